package fewbits

// isa is an instruction set that has kernels.
type isa uint8

const (
	portable isa = iota // none: package quant's functions
	avx2
	avx512
)

// sets are those that this processor has, and best the fastest of them; they never change.
var (
	sets = available()
	best = sets[0]
)

// withLanes is the set whose vectors have so many float32, or portable if there is none.
func withLanes(lanes int) isa {
	for _, s := range sets {
		if s.lanes() == lanes {
			return s
		}
	}
	return portable
}

// lanes are the float32 of a vector.
func (s isa) lanes() int { return []int{portable: 1, avx2: 8, avx512: 16}[s] }

// integers is an instruction set that has kernels of integers.
type integers uint8

const (
	plain  integers = iota // none: plain Go
	words                  // AVX2: products of pairs of 16 bits
	summed                 // AVX-512 with VNNI: such products, added to sums
)

// integerSets are those that this processor has, and fastest the fastest of them; they never
// change.
var (
	integerSets = availableIntegers()
	fastest     = integerSets[0]
)

// lanes are the rows of a panel.
func (s integers) lanes() int { return []int{plain: 1, words: 8, summed: 16}[s] }
