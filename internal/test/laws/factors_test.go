package laws_test

import (
	"bytes"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/models"
)

// wherever exchanges factors of all gradients that have some.
type wherever struct{}

func (wherever) Factors(_, _ int64) bool { return true }

// TestFactorsAgree: workers that exchange factors in place of gradients, with other batches,
// policies and budgets, have the same variables to the bit, the peaks that are predicted,
// and what exchanging gradients gives them but for rounding: a weight of several uses has its
// factors added up in another order.
func TestFactorsAgree(t *testing.T) {
	factored := exchanging(models.Training{Workers: 4, Factoring: wherever{}})
	plainly := exchanging(models.Training{Workers: 4})
	names := slices.Sorted(maps.Keys(plainly))
	for _, name := range names[:longtest.Count(2, len(names))] {
		build := plainly[name]
		t.Run(name, func(t *testing.T) {
			plain, err := build()
			if err != nil {
				t.Fatal(err)
			}
			m, err := factored[name]()
			if err != nil {
				t.Fatal(err)
			}
			parts := 0
			for _, n := range m.Graph.Nodes() {
				if x, _ := n.Sends(); x.Parts == 4 {
					parts++
				}
			}
			if parts == 0 {
				t.Fatal("no gradient has factors")
			}
			want := together(t, plain, 1, gomem.Options{}, gomem.Options{}, gomem.Options{},
				gomem.Options{})[0]
			all := together(t, m, 1, fourWays(t, m)...)
			for v, x := range want {
				for rank, got := range all {
					if !bytes.Equal(got[v].Data, all[0][v].Data) {
						t.Fatalf("worker %d has another %s than worker 0", rank, v)
					}
				}
				for i, f := range x.F32() {
					near := 3e-6 * max(1, math.Abs(float64(f)))
					if d := math.Abs(float64(f - all[0][v].F32()[i])); !(d <= near) {
						t.Fatalf("%s[%d] is %v, of gradients %v", v, i, all[0][v].F32()[i], f)
					}
				}
			}
		})
	}
}
