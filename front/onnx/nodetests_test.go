package onnx

import (
	_ "embed"
	"fmt"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/onnx"
	"github.com/gomem/gomem/nn"
)

// out.txt says which node tests are out of scope, and why: a pattern of names, a tab, the reason.
//
//go:embed testdata/out.txt
var out string

// exclusion is a line of out.txt.
type exclusion struct {
	pattern, reason string
	used            bool
}

// excluded are the lines of out.txt.
func excluded(t *testing.T) (list []*exclusion) {
	for line := range strings.Lines(out) {
		pattern, reason, ok := strings.Cut(strings.TrimSpace(line), "\t")
		if _, err := path.Match(pattern, ""); err != nil || !ok || reason == "" {
			t.Fatalf("out.txt: %q is not a pattern, a tab and a reason", line)
		}
		list = append(list, &exclusion{pattern: pattern, reason: reason})
	}
	return list
}

// TestNodes runs ONNX's own tests of operators, of the directory in GOMEM_ONNX_NODES. All pass
// but those that are out of scope.
func TestNodes(t *testing.T) {
	lines := excluded(t)
	dir := os.Getenv("GOMEM_ONNX_NODES")
	if dir == "" {
		t.Skip("GOMEM_ONNX_NODES names no directory of node tests")
	}
	cases, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	passed := 0
	for _, c := range cases {
		var by *exclusion
		for _, x := range lines {
			if ok, _ := path.Match(x.pattern, c.Name()); ok {
				by, x.used = x, true
			}
		}
		err := nodeCase(t, filepath.Join(dir, c.Name()))
		switch {
		case err != nil && by == nil:
			t.Errorf("%s\t%v", c.Name(), err)
		case err == nil && by != nil:
			t.Errorf("%s passes, and %s is out of scope: %s", c.Name(), by.pattern, by.reason)
		case err == nil:
			passed++
		}
	}
	for _, x := range lines {
		if !x.used {
			t.Errorf("no test is called %s", x.pattern)
		}
	}
	t.Logf("%d of %d", passed, len(cases))
}

// nodeTest is one of ONNX's tests.
type nodeTest struct {
	path  string
	file  *onnx.File
	feeds map[string]tensor.View
	want  []tensor.View
	given map[string]tensor.View // of feeds, what shapes depend on
}

func nodeCase(t *testing.T, dir string) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	c, err := readNode(dir)
	if err != nil {
		return err
	}
	return c.tried(func() error { return c.run(t) })
}

// tried does something, and again with more inputs given, as long as it fails for the want of them:
// those that it names, or, if it names others, those of integers, or all.
func (c *nodeTest) tried(do func() error) error {
	for {
		err := do()
		if err == nil || !strings.Contains(err.Error(), "depends on what is fed") {
			return err
		}
		if !c.give(func(name string, _ tensor.View) bool {
			return strings.Contains(err.Error(), fmt.Sprintf(", %q, depends", name))
		}) && !c.give(func(_ string, x tensor.View) bool { return !x.Type.DType.Floating() }) &&
			!c.give(func(string, tensor.View) bool { return true }) {
			return err
		}
	}
}

// give gives inputs, and reports whether there are any that were not.
func (c *nodeTest) give(which func(name string, x tensor.View) bool) (some bool) {
	for name, x := range c.feeds {
		if _, ok := c.given[name]; !ok && which(name, x) {
			c.given[name], some = x, true
		}
	}
	return some
}

func readNode(dir string) (*nodeTest, error) {
	c := &nodeTest{path: filepath.Join(dir, "model.onnx"), feeds: map[string]tensor.View{},
		given: map[string]tensor.View{}}
	var err error
	if c.file, err = onnx.Open(c.path); err != nil {
		return nil, err
	}
	set := filepath.Join(dir, "test_data_set_0")
	for i, v := range c.file.Graph.Inputs {
		x, err := readTensor(filepath.Join(set, fmt.Sprintf("input_%d.pb", i)))
		if err != nil {
			return nil, err
		}
		c.feeds[v.Name] = x
	}
	for i := range c.file.Graph.Outputs {
		x, err := readTensor(filepath.Join(set, fmt.Sprintf("output_%d.pb", i)))
		if err != nil {
			return nil, err
		}
		c.want = append(c.want, x)
	}
	return c, nil
}

func readTensor(path string) (tensor.View, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return tensor.View{}, err
	}
	m, err := onnx.Decode(wrapped(data))
	if err != nil {
		return tensor.View{}, err
	}
	return m.Graph.Initializers[0].View(nil)
}

// wrapped is a model with nothing but a tensor.
func wrapped(t []byte) []byte {
	g := protowire.AppendBytes(protowire.AppendTag(nil, 5, protowire.BytesType), t)
	m := protowire.AppendBytes(protowire.AppendTag(nil, 7, protowire.BytesType), g)
	return protowire.AppendBytes(protowire.AppendTag(m, 8, protowire.BytesType), nil)
}

// apply is a model of the test's network, what is to be fed to it, and its outputs.
func (c *nodeTest) apply() (*Net, *nn.Model, gomem.Feeds, []graph.Value, error) {
	sizes := map[string]int{}
	for _, v := range c.file.Graph.Inputs {
		if _, ok := c.given[v.Name]; ok {
			continue
		}
		for i, d := range v.Shape {
			if d.Size < 0 {
				sizes[axisName(v, i)] = c.feeds[v.Name].Type.Size(i)
			}
		}
	}
	net, err := Open(c.path, Options{Sizes: sizes, Given: c.given, Bound: 50})
	if err != nil {
		return nil, nil, nil, nil, err
	}
	m := nn.NewModel()
	in := net.Inputs(m)
	pass := m.Evaluation()
	if strings.Contains(c.path, "training") {
		pass = m.Training()
	}
	outs := net.Apply(pass, in...)
	fed := gomem.Feeds{}
	for _, v := range in {
		fed[v] = c.feeds[v.Node.Name]
	}
	return net, m, fed, outs, m.Err()
}

func (c *nodeTest) run(t *testing.T) error {
	net, m, fed, outs, err := c.apply()
	if err != nil {
		return err
	}
	s, err := gomem.Compile(t.Context(), m.Graph, gomem.Options{DeviceBytes: 1 << 28},
		gomem.Target{Name: "eval", Fetches: outs})
	if err != nil {
		return err
	}
	defer s.Close()
	if err := net.Load(s.Variables(), s.Set); err != nil {
		return err
	}
	got, err := s.Step(t.Context(), "eval", fed)
	if err != nil {
		return err
	}
	for i, g := range got {
		if err := near(g, c.want[i]); err != nil {
			return fmt.Errorf("output %d: %w", i, err)
		}
	}
	return nil
}

// near is ONNX's own measure, but for what is lost where large numbers cancel.
func near(got, want tensor.View) error {
	if got.Type.DType != want.Type.DType || !slices.Equal(got.Type.Sizes(), want.Type.Sizes()) {
		return fmt.Errorf("%s, want %s", got.Type, want.Type)
	}
	x, y := got.To(graph.F64).F64(), want.To(graph.F64).F64()
	relative := 1e-3
	switch got.Type.DType { // two units in the last place, for roundings in between differ
	case graph.F16:
		relative = 1.0 / 512
	case graph.BF16:
		relative = 1.0 / 64
	}
	largest := 1.0
	for _, v := range y {
		if a := math.Abs(v); a > largest && !math.IsInf(v, 0) {
			largest = a
		}
	}
	for i := range x {
		if math.IsNaN(x[i]) && math.IsNaN(y[i]) || x[i] == y[i] {
			continue
		}
		if !(math.Abs(x[i]-y[i]) <= 1e-7*largest+relative*math.Abs(y[i])) {
			return fmt.Errorf("element %d is %v, want %v", i, x[i], y[i])
		}
	}
	return nil
}
