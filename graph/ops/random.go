package ops

import (
	"fmt"

	"github.com/gomem/gomem/graph"
)

// Randomness is a function, not a state: operand seed, i32[2], has the run's
// seed and the number of the step; every random operation has a salt of its
// own; and element i of the stream that the three select is the same whoever
// asks for it. An operation that is computed again, elsewhere or on other
// threads gives the same bits.

// salt tells the random operations of a graph apart by their names (FNV-1a).
func salt(name string) uint64 {
	h := uint64(0xcbf29ce484222325)
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * 0x100000001b3
	}
	return h
}

// claimed is the salt of a random operation that is being made. No other of the
// graph may have its name, with the same seed.
func claimed(seed graph.Value, name string) uint64 {
	if seed.Valid() {
		seed.Graph().ClaimStream(seed, name)
	}
	return salt(name)
}

// streamKey is the Philox key of a seed and a salt.
func streamKey(seed []int32, salt uint64) uint64 {
	words := uint64(uint32(seed[0])) | uint64(uint32(seed[1]))<<32
	return scramble(scramble(words) ^ salt)
}

// scramble is the finaliser of SplitMix64: every bit depends on every bit.
func scramble(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// unit maps a random word to [0, 1), exactly.
func unit(word uint32) float32 { return float32(float32(word>>8) * (1.0 / (1 << 24))) }

// checkSeed rejects anything but i32[2].
func checkSeed(t graph.Type) error {
	if t.DType != graph.I32 || t.Rank() != 1 || t.Size(0) != 2 {
		return fmt.Errorf("the seed is %s, want i32[2]: seed and step%s", t,
			convertible(t, graph.I32))
	}
	return nil
}
