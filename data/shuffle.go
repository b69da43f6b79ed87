package data

import "math/bits"

// feistelRounds is the number of rounds after which a Feistel network with
// good round functions is a strong pseudo-random permutation (Luby and
// Rackoff, 1988).
const feistelRounds = 4

// few is how many items are dealt one by one: a Feistel network on less than six bits
// favours some orders.
const few = 64

// permute returns the place of i, 0 ≤ i < n, in the permutation of [0, n) that
// key selects. It is a balanced Feistel network on the smallest even number of
// bits that holds n, walked until it lands inside [0, n): fewer than four
// walks on average, and no table.
func permute(i, n int, key uint64) int {
	if n < few {
		return deal(i, n, key)
	}
	half := (bits.Len(uint(n-1)) + 1) / 2
	mask := uint64(1)<<half - 1
	for x := uint64(i); ; {
		left, right := x>>half, x&mask
		for round := range uint64(feistelRounds) {
			left, right = right, left^mix(key+mix(right<<2|round))&mask
		}
		if x = left<<half | right; x < uint64(n) {
			return int(x)
		}
	}
}

// deal is permute for few items: the shuffle of Fisher and Yates.
func deal(i, n int, key uint64) int {
	var order [few]uint8
	for k := range n {
		j, _ := bits.Mul64(mix(key+mix(uint64(k))), uint64(k+1)) // 0 ≤ j ≤ k
		order[k], order[j] = order[j], uint8(k)
	}
	return int(order[i])
}

// mix is the finaliser of SplitMix64 (Steele, Lea and Flood, 2014): a
// bijection in which every input bit affects every output bit.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
