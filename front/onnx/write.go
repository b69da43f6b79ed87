package onnx

import (
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/onnx"
)

// Write writes the file again, to path, with the values that the network's parameters have by
// their names. All else is as it is in the file; weights that it has in other files come into this
// one, or go to one beside it, path with ".data", where they are 2 GiB and more.
func (n *Net) Write(path string, value func(parameter string) (tensor.View, error)) error {
	return n.file.Rewrite(path, func(t *onnx.Tensor) ([]byte, error) {
		if _, ok := n.loads[t.Name]; !ok {
			return nil, nil
		}
		v, err := value(t.Name)
		if err != nil {
			return nil, err
		}
		d, err := t.Type.DType()
		if err != nil {
			return nil, err
		}
		return v.As(d).Data, nil
	})
}
