package train

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/nn"
)

// Base is the public checkpoint that a run began with, where training leaves some of its weights
// as they are: those are in no checkpoint of the run, which are read together with their base.
type Base struct {
	Path        string `json:"path"` // absolute
	Fingerprint string `json:"fingerprint"`
}

// frozen are the variables that no update of a graph writes.
func frozen(g *graph.Graph) map[string]bool {
	names := map[string]bool{}
	for _, n := range g.Variables() {
		names[n.Name] = true
	}
	for _, update := range g.Updates() {
		for _, v := range update.In[:update.Mutates] {
			delete(names, v.Node.Name)
		}
	}
	return names
}

// baseOf is what a run's checkpoints are to be read with, if it begins with a public checkpoint and
// is alone: workers give each other all that they have.
func baseOf(o Options) (*Base, error) {
	if o.Parallel != nil || o.Init == "" || o.Rename != nil || !IsPublic(o.Init) ||
		len(frozen(o.Model.Graph)) == 0 {
		return nil, nil
	}
	p, err := OpenPublic(o.Init)
	if err != nil {
		return nil, err
	}
	return p.base()
}

// of are the variables of a run's model that are in no checkpoint of the run.
func (b *Base) of(m *nn.Model) map[string]bool {
	if b == nil {
		return nil
	}
	return frozen(m.Graph)
}

// base is the checkpoint as the base of a run.
func (p *Public) base() (b *Base, err error) {
	b = &Base{}
	if b.Path, err = filepath.Abs(p.Path); err != nil {
		return nil, &ErrCheckpoint{Path: p.Path, Err: err}
	}
	if b.Fingerprint, err = p.fingerprint(); err != nil {
		return nil, &ErrCheckpoint{Path: p.Path, Err: bare(err)}
	}
	return b, nil
}

// sampled is how much of a tensor a fingerprint is of: enough to tell two trainings apart, and
// little enough that a large checkpoint's takes no time.
const sampled = 4096

// fingerprint is a digest of the names and types of the parameters, and of how each begins.
func (p *Public) fingerprint() (string, error) {
	sum := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(p.tensors)) {
		t := p.tensors[name]
		if fmt.Fprintln(sum, t.Name, tensor.Of(t.Type.DType, t.Type.Sizes()...)); t.stored != nil {
			fmt.Fprintln(sum, t.stored.Type)
		}
		start, err := t.start(min(sampled, t.bytes()))
		if err != nil {
			return "", err
		}
		sum.Write(start)
	}
	return hex.EncodeToString(sum.Sum(nil)[:16]), nil
}

// start is the first n bytes.
func (t publicTensor) start(n int64) ([]byte, error) {
	f, err := t.open()
	if err != nil {
		return nil, err
	}
	defer closeRead(f)
	start := make([]byte, n)
	return start, t.part(f, start, 0)
}

// open opens the base of a run's checkpoint, which has to be what it was.
func (b Base) open() (*Public, error) {
	p, err := OpenPublic(b.Path)
	if err != nil {
		return nil, fmt.Errorf("is to be read with the weights that its run began with: %w", err)
	}
	is, err := p.fingerprint()
	if err == nil && is != b.Fingerprint {
		err = fmt.Errorf("is to be read with the weights that its run began with, and %s has "+
			"others now: put those back", b.Path)
	}
	return p, err
}

// separate are the variables whose values a checkpoint has, and those that its base has.
func (o *opened) separate(vars []graph.Value) (own, based []graph.Value) {
	if o.Base == nil {
		return vars, nil
	}
	has := map[string]bool{}
	for _, e := range o.file.Entries() {
		has[e.Name] = true
	}
	for _, v := range vars {
		if has[v.Node.Name] {
			own = append(own, v)
		} else {
			based = append(based, v)
		}
	}
	return own, based
}

// setBased gives variables of a session the values that the checkpoint's base has.
func (o *opened) setBased(s *gomem.Session, vars []graph.Value) error {
	if len(vars) == 0 {
		return nil
	}
	p, err := o.Base.open()
	if err == nil {
		err = p.Load(s, vars)
	}
	if err != nil {
		return o.fail("%w", err)
	}
	return nil
}

// Values are those of the variables of a run's checkpoint, wherever they are.
type Values struct {
	from *opened
	base *Public
}

// OpenValues opens a checkpoint of a run, its file or a directory for the latest in it, and the
// base of it if there is one. Close it.
func OpenValues(path string) (*Values, error) {
	o, err := open(path)
	if err != nil {
		return nil, err
	}
	x := &Values{from: o}
	if o.Base != nil {
		if x.base, err = o.Base.open(); err != nil {
			o.close()
			return nil, o.fail("%w", err)
		}
	}
	return x, nil
}

// Close ends reading.
func (x *Values) Close() { x.from.close() }

// Get is the value of a variable. Errors are *[ErrCheckpoint]s.
func (x *Values) Get(v graph.Value) (tensor.View, error) {
	if _, based := x.from.separate([]graph.Value{v}); len(based) > 0 {
		return x.base.value(v)
	}
	t, err := x.from.file.Get(v.Node.Name)
	if err != nil {
		return t, x.from.fail("%w", bare(err))
	}
	return t, nil
}

// value is a parameter of the checkpoint, as the variable's type has it.
func (p *Public) value(v graph.Value) (tensor.View, error) {
	r, err := p.windows(v)
	if err != nil {
		return tensor.View{}, err
	}
	out := tensor.New(v.Type())
	at := 0
	err = streamed(r, v.Type(), func(x tensor.View) error {
		at += copy(out.Data[at:], x.Data)
		return nil
	})
	return out, err
}

// windows are those of a parameter of the checkpoint.
func (p *Public) windows(v graph.Value) (windows, error) {
	if err := p.has([]graph.Value{v}); err != nil {
		return nil, err
	}
	return p.tensors[v.Node.Name].windows()
}
