package distrib

import "testing"

// TestHaltonAloneIsBroken: the survey's distances do not connect 17 sizes of 3 to 128,
// which is why the next worker is added.
func TestHaltonAloneIsBroken(t *testing.T) {
	broken := map[int]bool{}
	for n := 3; n <= 128; n++ {
		common := n
		for _, d := range haltonOffsets(n) {
			for d != 0 {
				common, d = d, common%d
			}
		}
		if common > 1 {
			broken[n] = true
		}
	}
	if len(broken) != 17 {
		t.Errorf("%d sizes are not connected", len(broken))
	}
	for n := 8; n <= 128; n *= 2 {
		if !broken[n] {
			t.Errorf("%d is connected", n)
		}
	}
}
