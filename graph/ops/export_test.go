package ops

import "github.com/gomem/gomem/graph/tensor"

// TestName is the sample's name, for the external tests.
func (s Sample) TestName() string { return s.name() }

// TestOperands are the sample's operands, for the external tests.
func (s Sample) TestOperands(seed uint64) []tensor.View { return s.operands(seed) }
