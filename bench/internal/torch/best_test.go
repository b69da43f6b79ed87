package torch

import (
	"slices"
	"testing"
)

func TestEnvironment(t *testing.T) {
	got := Environment([]string{"HOME=/h", "OPENBLAS_CORETYPE=Haswell", "OMP_WAIT_POLICY=passive"},
		3)
	if !slices.Contains(got, "HOME=/h") || !slices.Contains(got, "OMP_NUM_THREADS=3") ||
		slices.Contains(got, "OPENBLAS_CORETYPE=Haswell") {
		t.Errorf("environment is %v", got)
	}
}
