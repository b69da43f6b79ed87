package onnx

import (
	"testing"

	"github.com/gomem/gomem/nn"
)

// TestUnread: results that a file names and nobody reads cost nothing. PyTorch's older exporter
// names the last states and cells of its LSTM.
func TestUnread(t *testing.T) {
	net, err := Open("../../bench/onnx/testdata/lstm-torchscript.onnx", Options{Batch: 2})
	if err != nil {
		t.Fatal(err)
	}
	nodes := func() int {
		m := nn.NewModel()
		net.Apply(m.Evaluation(), net.Inputs(m)...)
		if err := m.Graph.Err(); err != nil {
			t.Fatal(err)
		}
		return m.Graph.Len()
	}
	named, layers := nodes(), 0
	for _, n := range net.file.Graph.Nodes {
		if n.Op == "LSTM" && n.Out[1] != "" && n.Out[2] != "" {
			n.Out = n.Out[:1]
			layers++
		}
	}
	if got := nodes(); got != named || layers != 2 {
		t.Errorf("%d nodes with results of %d layers that nobody reads, %d without", named,
			layers, got)
	}
}
