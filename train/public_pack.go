package train

import (
	"fmt"
	"runtime"
	"sync"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/quant"
	"github.com/gomem/gomem/internal/safetensors"
)

// held is the type of a tensor of the checkpoint as a variable holds it, in a format or, "", as it
// is.
func held(format string, t graph.Type) graph.Type {
	if format == "" || t.Rank() != 2 {
		return t
	}
	packed, err := ops.PackedType(t.Size(0), t.Size(1), format)
	if err != nil {
		return t
	}
	return packed
}

// formatsOf are the formats of variables of one graph that are held in few bits.
func formatsOf(vars []graph.Value) map[*graph.Node]string {
	if len(vars) == 0 {
		return nil
	}
	return ops.Packings(vars[0].Graph())
}

// packPiece is about how many elements are read at a time.
const packPiece = 1 << 20

// pack gives a variable in a format of few bits the value of the checkpoint, some rows at a time.
func (p *Public) pack(s *gomem.Session, v graph.Value, name string) error {
	t := p.tensors[v.Node.Name]
	f, err := safetensors.Open(t.file)
	if err != nil {
		return &ErrCheckpoint{Path: t.file, Err: bare(err)}
	}
	defer closeRead(f)
	rows, width := t.Type.Size(0), t.Type.Size(1)
	format, err := quant.Parse(name)
	if err != nil {
		return &ErrCheckpoint{Path: t.file, Err: err}
	}
	out := tensor.New(v.Type())
	some := max(1, packPiece/max(1, width))
	buffer := make([]byte, int64(some)*int64(width)*t.Type.DType.Size())
	for at := 0; at < rows; at += some {
		n := min(some, rows-at)
		piece := tensor.View{Type: tensor.Of(t.Type.DType, n, width),
			Data: buffer[:int64(n)*int64(width)*t.Type.DType.Size()]}
		if _, err := f.ReadPart(t.Name, piece.Data, int64(at)*int64(width)*
			t.Type.DType.Size()); err != nil {
			return &ErrCheckpoint{Path: t.file, Err: bare(err)}
		}
		x := tensor.New(tensor.Of(graph.F32, n, width))
		tensor.Convert(x, piece, 0, n*width)
		if bad, i := nonFinite(x); i >= 0 {
			return &ErrCheckpoint{Path: t.file, Err: fmt.Errorf("tensor %s has an element that "+
				"is %v, which %s has not", shownName(t.Name), bad, format)}
		}
		size := len(out.Data) / rows
		packRows(format, out.Data[at*size:(at+n)*size], x.F32(), n)
	}
	return s.Set(v, out)
}

// packRows packs n rows, by as many threads as there are processors.
func packRows(format quant.Format, out []byte, x []float32, n int) {
	var group sync.WaitGroup
	threads := min(n, runtime.GOMAXPROCS(0))
	size, width := len(out)/n, len(x)/n
	for i := range threads {
		group.Go(func() {
			for row := i * n / threads; row < (i+1)*n/threads; row++ {
				format.Pack(out[row*size:(row+1)*size], x[row*width:(row+1)*width])
			}
		})
	}
	group.Wait()
}
