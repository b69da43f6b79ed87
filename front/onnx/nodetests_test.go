package onnx

import (
	"fmt"
	"math"
	"os"
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

// TestNodes runs ONNX's own tests of operators, of the directory in GOMEM_ONNX_NODES.
func TestNodes(t *testing.T) {
	dir := os.Getenv("GOMEM_ONNX_NODES")
	if dir == "" {
		t.Skip("GOMEM_ONNX_NODES names no directory of node tests")
	}
	cases, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	passed, why := 0, map[string][]string{}
	for _, c := range cases {
		if err := nodeCase(t, filepath.Join(dir, c.Name())); err != nil {
			why[c.Name()] = []string{err.Error()}
			continue
		}
		passed++
	}
	names := make([]string, 0, len(why))
	for n := range why {
		names = append(names, n)
	}
	slices.Sort(names)
	for _, n := range names {
		fmt.Printf("%s\t%s\n", n, why[n][0])
	}
	t.Logf("%d of %d", passed, len(cases))
}

func nodeCase(t *testing.T, dir string) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	path := filepath.Join(dir, "model.onnx")
	file, err := onnx.Open(path)
	if err != nil {
		return err
	}
	set := filepath.Join(dir, "test_data_set_0")
	feeds := map[string]tensor.View{}
	for i, v := range file.Graph.Inputs {
		x, err := readTensor(filepath.Join(set, fmt.Sprintf("input_%d.pb", i)))
		if err != nil {
			return err
		}
		feeds[v.Name] = x
	}
	var want []tensor.View
	for i := range file.Graph.Outputs {
		x, err := readTensor(filepath.Join(set, fmt.Sprintf("output_%d.pb", i)))
		if err != nil {
			return err
		}
		want = append(want, x)
	}
	given := map[string]tensor.View{}
	for try := 0; ; try++ {
		err := runNode(t, path, file, feeds, given, want)
		if err == nil || try == 2 || !strings.Contains(err.Error(), "depends on what is fed") {
			return err
		}
		for name, x := range feeds {
			if try == 1 || !x.Type.DType.Floating() {
				given[name] = x
			}
		}
	}
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

func runNode(t *testing.T, path string, file *onnx.File, feeds, given map[string]tensor.View,
	want []tensor.View) error {
	sizes := map[string]int{}
	for _, v := range file.Graph.Inputs {
		if _, ok := given[v.Name]; ok {
			continue
		}
		for i, d := range v.Shape {
			if d.Size < 0 {
				sizes[axisName(v, i)] = feeds[v.Name].Type.Size(i)
			}
		}
	}
	net, err := Open(path, Options{Sizes: sizes, Given: given})
	if err != nil {
		return err
	}
	m := nn.NewModel()
	in := net.Inputs(m)
	pass := m.Evaluation()
	if strings.Contains(path, "training") {
		pass = m.Training()
	}
	outs := net.Apply(pass, in...)
	if err := m.Err(); err != nil {
		return err
	}
	fed := gomem.Feeds{}
	for _, v := range in {
		fed[v] = feeds[v.Node.Name]
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
		if err := near(g, want[i]); err != nil {
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
	if got.Type.DType == graph.BF16 {
		relative = 1.0 / 64 // two units in the last place
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
