package train

import (
	"io"
	"runtime"
	"sync"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/quant"
	"github.com/gomem/gomem/internal/safetensors"
)

// tensorFile is an open file of tensors, of either kind.
type tensorFile interface {
	io.Closer
	// ReadPart reads bytes of a tensor that begin at an offset.
	ReadPart(name string, into []byte, at int64) error
}

// plain is one of safetensors.
type plain struct{ *safetensors.File }

// ReadPart is that of a tensorFile: of a part there is no checksum to compare.
func (p plain) ReadPart(name string, into []byte, at int64) error {
	_, err := p.File.ReadPart(name, into, at)
	return err
}

// open opens the file of a tensor.
func (t publicTensor) open() (tensorFile, error) {
	if t.stored != nil {
		return t.stored.file.Reopen()
	}
	f, err := safetensors.Open(t.file)
	return plain{f}, err
}

// bytes are those that it has in the file.
func (t publicTensor) bytes() int64 {
	if t.stored != nil {
		return t.stored.Bytes()
	}
	return t.Type.Bytes()
}

// rowBytes are those of a row in the file.
func (t publicTensor) rowBytes() int {
	if t.stored != nil {
		return int(t.stored.Bytes()) / t.stored.Rows()
	}
	return int(t.bytes()) / t.Type.Size(0)
}

// format is that of few bits in which the file has it; 0 if it has it as floats.
func (t publicTensor) format() quant.Format {
	if t.stored == nil {
		return 0
	}
	return t.stored.format
}

// part reads bytes as the file has them.
func (t publicTensor) part(f tensorFile, into []byte, at int64) error {
	if t.stored != nil {
		return f.ReadPart(t.stored.Name, into, t.stored.Start()+at)
	}
	return f.ReadPart(t.Name, into, at)
}

// readRows reads rows of a matrix from the one of a number on, in the order of the parameter.
func (t publicTensor) readRows(f tensorFile, into []byte, from int) error {
	size := t.rowBytes()
	if t.stored == nil || t.stored.Ordered() {
		return t.part(f, into, int64(from)*int64(size))
	}
	for i := 0; i*size < len(into); i++ {
		at := int64(t.stored.Row(from + i))
		if err := t.part(f, into[i*size:(i+1)*size], at*int64(size)); err != nil {
			return err
		}
	}
	return nil
}

// unpack makes f32 of n rows.
func (t publicTensor) unpack(out tensor.View, raw []byte, n int) {
	format, all := t.format(), out.Type.Elems()
	if format == 0 {
		in := tensor.View{Type: tensor.Of(t.Type.DType, all), Data: raw}
		tensor.Convert(out, in, 0, all)
		return
	}
	x, size, width := out.F32(), len(raw)/n, all/n
	eachRow(n, func(i int) {
		format.Unpack(x[i*width:(i+1)*width], raw[i*size:(i+1)*size])
	})
}

// some are n elements of a view of f32 from the one of a number on.
func some(x tensor.View, from, n int) tensor.View {
	return tensor.View{Type: tensor.Of(graph.F32, n), Data: x.Data[4*from : 4*(from+n)]}
}

// eachRow does something with each of n rows, by as many threads as there are processors.
func eachRow(n int, do func(i int)) {
	var group sync.WaitGroup
	threads := min(n, runtime.GOMAXPROCS(0))
	for k := range threads {
		group.Go(func() {
			for i := k * n / threads; i < (k+1)*n/threads; i++ {
				do(i)
			}
		})
	}
	group.Wait()
}

// whole reads all of a tensor: as the file has it, or of one of llama.cpp as f32.
func (t publicTensor) whole(f tensorFile) (tensor.View, error) {
	if p, ok := f.(plain); ok {
		return p.Get(t.Name)
	}
	out := tensor.New(tensor.Of(graph.F32, t.Type.Sizes()...))
	if t.Type.Rank() < 2 {
		return out, t.vector(f, out.F32())
	}
	rows, width := t.stored.Sizes[0], t.stored.Sizes[1]
	piece := min(rows, max(1, packPiece/width))
	raw, turned := make([]byte, piece*t.rowBytes()), tensor.New(tensor.Of(graph.F32, piece*width))
	for at := 0; at < rows; at += piece {
		n := min(piece, rows-at)
		raw, x := raw[:n*t.rowBytes()], some(turned, 0, n*width)
		if !t.stored.Turned {
			x = some(out, at*width, n*width)
		}
		if err := t.readRows(f, raw, at); err != nil {
			return out, err
		}
		if t.unpack(x, raw, n); !t.stored.Turned {
			continue
		}
		for i, v := range x.F32() {
			out.F32()[i%width*rows+at+i/width] = v
		}
	}
	return out, nil
}

// vector reads one of a file of llama.cpp.
func (t publicTensor) vector(f tensorFile, x []float32) error {
	raw, read := make([]byte, t.bytes()), tensor.New(tensor.Of(graph.F32, len(x)))
	if err := t.part(f, raw, 0); err != nil {
		return err
	}
	t.unpack(read, raw, 1)
	for i := range x {
		x[i] = read.F32()[t.stored.Row(i)]
	}
	return nil
}
