package kernel_test

import (
	"testing"

	"github.com/gomem/gomem/internal/kernel"
)

// TestInstructionSetIsNamed: a checkpoint records the name.
func TestInstructionSetIsNamed(t *testing.T) {
	switch name := kernel.InstructionSet(); name {
	case "avx512", "avx2", "portable":
	default:
		t.Errorf("the instruction set is %q", name)
	}
}
