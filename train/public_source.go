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
