package data

import (
	"math"
	"testing"

	"github.com/gomem/gomem/internal/longtest"
)

// unlikely is a χ² that one in 10⁹ fair draws exceeds, by Wilson and Hilferty.
func unlikely(degrees float64) float64 {
	k := 2 / (9 * degrees)
	return degrees * math.Pow(1-k+6*math.Sqrt(k), 3)
}

// TestFewItemsHaveEveryOrder: over seeds, each of the n! orders is as likely.
func TestFewItemsHaveEveryOrder(t *testing.T) {
	for n := 2; n <= 6; n++ {
		seeds := longtest.Count(40_000, 4_000_000)
		counts := map[[6]int]int{}
		for seed := range uint64(seeds) {
			var order [6]int
			for i := range n {
				order[i] = permute(i, n, mix(seed))
			}
			counts[order]++
		}
		orders := math.Gamma(float64(n + 1))
		expected, chi2 := float64(seeds)/orders, float64(seeds)/orders*(orders-float64(len(counts)))
		for _, c := range counts {
			chi2 += (float64(c) - expected) * (float64(c) - expected) / expected
		}
		if most := unlikely(orders - 1); chi2 > most {
			t.Errorf("%d items: χ² of %.0f orders is %.0f, want at most %.0f", n, orders, chi2,
				most)
		}
	}
}

// TestFewItemsHaveEveryPlace: over seeds, each item comes to each place as often, and
// to each distance from the item before it.
func TestFewItemsHaveEveryPlace(t *testing.T) {
	for _, n := range []int{2, 5, 17, 33, 63} {
		seeds := longtest.Count(4_000, 100_000)
		places, after := make([]int, n*n), make([]int, n*n)
		for seed := range uint64(seeds) {
			last := permute(n-1, n, seed)
			for i := range n {
				place := permute(i, n, seed)
				places[i*n+place]++
				after[i*n+(place-last+n)%n]++
				last = place
			}
		}
		expected := float64(seeds) / float64(n)
		chi2, chi2After := 0.0, 0.0
		for i := range places {
			chi2 += math.Pow(float64(places[i])-expected, 2) / expected
			if i%n > 0 { // neighbours do not share a place
				mean := float64(seeds) / float64(n-1)
				chi2After += math.Pow(float64(after[i])-mean, 2) / mean
			}
		}
		if degrees := float64((n - 1) * (n - 1)); chi2 > unlikely(degrees) {
			t.Errorf("%d items: χ² of places is %.0f at %.0f degrees", n, chi2, degrees)
		}
		if degrees := float64(n * max(1, n-2)); chi2After > unlikely(degrees) {
			t.Errorf("%d items: χ² of distances is %.0f at %.0f degrees", n, chi2After, degrees)
		}
	}
}

// TestManyItemsKeepTheirOrder: runs that have begun go on as they would have.
func TestManyItemsKeepTheirOrder(t *testing.T) {
	for _, c := range []struct {
		n    int
		want [5]int
	}{{64, [5]int{8, 55, 26, 42, 60}}, {1000, [5]int{731, 428, 987, 661, 946}}} {
		var got [5]int
		for i := range got {
			got[i] = permute(i, c.n, 7)
		}
		if got != c.want {
			t.Errorf("%d items begin with %v, want %v", c.n, got, c.want)
		}
	}
}
