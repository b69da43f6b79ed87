package laws_test

import (
	"testing"

	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/internal/randgraph"
)

// TestPlansOfWideGraphs: the first law holds for graphs of all operations.
func TestPlansOfWideGraphs(t *testing.T) {
	plansDoNotAffect(t, randgraph.WideExchanging, longtest.Count(1, 3))
}
