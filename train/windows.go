package train

import (
	"cmp"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/safetensors"
)

// window is a part of a parameter: some columns of some rows, one row after the other. A vector is
// one row, and of what has more axes all but the first make columns.
type window struct{ row, rows, col, cols int }

// wholeOf is all of a parameter.
func wholeOf(t graph.Type) window {
	if t.Rank() < 2 {
		return window{rows: 1, cols: t.Elems()}
	}
	return window{rows: t.Size(0), cols: t.Elems() / max(1, t.Size(0))}
}

// elems is how many elements it has.
func (w window) elems() int { return w.rows * w.cols }

// bands visits all of a window some rows at a time, of packPiece elements or so, or one row.
func (w window) bands(visit func(window) error) error {
	step := max(1, packPiece/max(1, w.cols))
	for at := 0; at < w.rows; at += step {
		band := window{w.row + at, min(step, w.rows-at), w.col, w.cols}
		if err := visit(band); err != nil {
			return err
		}
	}
	return nil
}

// windows read a parameter, a window at a time, as f32. Errors are *[ErrCheckpoint]s.
type windows interface {
	// read sets x, which has as many elements as the window.
	read(w window, x tensor.View) error
	// end ends reading. Of a parameter each of whose elements has been read once it says whether
	// it has been damaged.
	end() error
}

// ofFile are the windows of a tensor in a file of safetensors, of which others read as well.
type ofFile struct {
	file *safetensors.File
	safetensors.Entry
	sum    uint32
	buffer []byte
	close  func()
	fail   func(error) error
}

func (r *ofFile) read(w window, x tensor.View) error {
	size, width := int(r.Type.DType.Size()), wholeOf(r.Type).cols
	raw := r.buffer
	if n := w.elems() * size; n > len(raw) {
		raw = make([]byte, n)
		r.buffer = raw
	}
	raw = raw[:w.elems()*size]
	sum, err := r.file.ReadRuns(r.Name, raw, func(visit func(at, to, n int)) {
		if w.cols == width {
			visit(w.row*width*size, 0, len(raw))
			return
		}
		for i := range w.rows {
			visit(((w.row+i)*width+w.col)*size, i*w.cols*size, w.cols*size)
		}
	})
	if err != nil {
		return r.fail(err)
	}
	r.sum ^= sum
	in := tensor.View{Type: tensor.Of(r.Type.DType, w.elems()), Data: raw}
	tensor.Convert(x, in, 0, w.elems())
	return nil
}

func (r *ofFile) end() error {
	defer r.close()
	if err := r.file.CheckParts(r.Name, r.sum); err != nil {
		return r.fail(err)
	}
	return nil
}

// ofGGUF are the windows of a tensor in a file of llama.cpp.
type ofGGUF struct {
	publicTensor
	in       tensorFile
	buffer   []byte
	unpacked tensor.View
}

func (r *ofGGUF) read(w window, x tensor.View) error {
	if err := r.numbers(w, x); err != nil {
		return r.failed(err)
	}
	return nil
}

func (r *ofGGUF) numbers(w window, x tensor.View) error {
	switch {
	case r.Type.Rank() < 2:
		return r.vector(r.in, x.F32())
	case r.stored.Turned:
		return r.turned(w, x.F32())
	case w.cols < wholeOf(r.Type).cols:
		for i := range w.rows {
			to := x.F32()[i*w.cols : (i+1)*w.cols]
			if err := r.columns(w.row+i, w.col, to); err != nil {
				return err
			}
		}
		return nil
	}
	raw := r.room(w.rows * r.rowBytes())
	if err := r.readRows(r.in, raw, w.row); err != nil {
		return err
	}
	r.unpack(x, raw, w.rows)
	return nil
}

// turned reads a window of a matrix that has rows in the file where the window has columns.
func (r *ofGGUF) turned(w window, x []float32) error {
	column := make([]float32, w.rows)
	for j := range w.cols {
		if err := r.columns(w.col+j, w.row, column); err != nil {
			return err
		}
		for i, v := range column {
			x[i*w.cols+j] = v
		}
	}
	return nil
}

// columns reads columns of a row from the one of a number on.
func (r *ofGGUF) columns(row, from int, x []float32) error {
	block, size := 1, 4 // f32
	if f := r.format(); f != 0 {
		block = f.Block()
		bytes, err := f.RowBytes(block)
		if err != nil {
			return err
		}
		size = int(bytes)
	}
	first, end := from/block, (from+len(x)+block-1)/block
	raw := r.room((end - first) * size)
	at := int64(r.stored.Row(row))*int64(r.rowBytes()) + int64(first*size)
	if err := r.part(r.in, raw, at); err != nil {
		return err
	}
	n := (end - first) * block
	if len(r.unpacked.Data) < 4*n {
		r.unpacked = tensor.New(tensor.Of(graph.F32, n))
	}
	out := some(r.unpacked, 0, n)
	r.unpack(out, raw, 1)
	copy(x, out.F32()[from-first*block:])
	return nil
}

// room is a buffer of n bytes.
func (r *ofGGUF) room(n int) []byte {
	if len(r.buffer) < n {
		r.buffer = make([]byte, n)
	}
	return r.buffer[:n]
}

func (r *ofGGUF) end() error {
	closeRead(r.in)
	return nil
}

// windows are those of a tensor of a public checkpoint.
func (t publicTensor) windows() (windows, error) {
	f, err := t.open()
	if err != nil {
		return nil, t.failed(err)
	}
	if p, ok := f.(plain); ok {
		return &ofFile{file: p.File, Entry: t.Entry, close: func() { closeRead(f) },
			fail: t.failed}, nil
	}
	return &ofGGUF{publicTensor: t, in: f}, nil
}

// failed is an error that names the tensor's file.
func (t publicTensor) failed(err error) error {
	return &ErrCheckpoint{Path: t.file, Err: bare(err)}
}

// windows are those of a variable.
func (x *Values) windows(v graph.Value) (windows, error) {
	if _, based := x.from.separate([]graph.Value{v}); len(based) > 0 {
		return x.base.windows(v)
	}
	e := safetensors.Entry{Name: v.Node.Name, Type: v.Type()}
	return &ofFile{file: x.from.file, Entry: e, close: func() {},
		fail: func(err error) error { return x.from.fail("%w", bare(err)) }}, nil
}

// aheadPiece is about how many elements are read at a time of a matrix whose every row is in pieces
// all over the file.
const aheadPiece = 1 << 20

// ahead reads more rows than it is asked for, and has them for when it is asked for the next.
type ahead struct {
	windows
	of   window
	have window
	kept tensor.View
}

func (a *ahead) read(w window, x tensor.View) error {
	if w.row < a.have.row || w.row+w.rows > a.have.row+a.have.rows {
		rows := max(w.rows, aheadPiece/max(1, w.cols))
		a.have = window{w.row, min(rows, a.of.rows-w.row), 0, w.cols}
		if len(a.kept.Data) < 4*a.have.elems() {
			a.kept = tensor.New(tensor.Of(graph.F32, a.have.elems()))
		}
		if err := a.windows.read(a.have, some(a.kept, 0, a.have.elems())); err != nil {
			a.have = window{}
			return err
		}
	}
	copy(x.Data, some(a.kept, (w.row-a.have.row)*w.cols, w.elems()).Data)
	return nil
}

// streamed visits all that windows have in order, as elements of a type, and ends them. What is
// visited is overwritten afterwards.
func streamed(r windows, t graph.Type, visit func(x tensor.View) error) error {
	var plain, out tensor.View
	err := wholeOf(t).bands(func(w window) error {
		n := w.elems()
		if len(plain.Data) < 4*n {
			plain = tensor.New(tensor.Of(graph.F32, n))
			out = tensor.New(tensor.Of(t.DType, n))
		}
		x := some(plain, 0, n)
		if err := r.read(w, x); err != nil {
			return err
		}
		if t.DType == graph.F32 {
			return visit(x)
		}
		tensor.Convert(out, x, 0, n)
		kind := tensor.Of(t.DType, n)
		return visit(tensor.View{Type: kind, Data: out.Data[:kind.Bytes()]})
	})
	return cmp.Or(err, r.end())
}
