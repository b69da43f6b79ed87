package lower

import "github.com/gomem/gomem/plan/space"

// Need is what a plan takes, or may take, by space, in bytes: of the device, the host and the disk.
type Need [space.Disk + 1]int64

// Within reports whether all budgets suffice.
func (n Need) Within(budgets Need) bool {
	for s, bytes := range n {
		if bytes > budgets[s] {
			return false
		}
	}
	return true
}

// Fraction is the largest part of a budget that is needed: 1 is all of it.
func (n Need) Fraction(budgets Need) float64 {
	var most float64
	for s, bytes := range n {
		if bytes > 0 {
			most = max(most, float64(bytes)/float64(budgets[s]))
		}
	}
	return most
}
