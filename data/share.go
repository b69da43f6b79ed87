package data

import (
	"cmp"
	"fmt"
	"math"
)

// heldOutClasses is how many classes the hash of an item's name falls into; the first
// of them is held out unless another share is asked for.
const heldOutClasses = 50

// CheckEvalShare refuses a share of the data to hold out that is not above 0 and below
// 1, nor 0, which stands for 1/50.
func CheckEvalShare(share float64) error {
	if share >= 0 && share < 1 {
		return nil
	}
	return fmt.Errorf("share of %v for evaluation: give a number above 0, below 1", share)
}

// HeldOut reports whether an item of this name is held out, by the hash of the name
// alone, where so large a share of all items is: above 0 and below 1, or 0 for 1/50.
// What a share holds out, a larger one does too.
func HeldOut(name string, share float64) bool { return heldOut(hashString(name), share) }

// heldOut is HeldOut of a hash. Shares take whole classes in their order, the first
// for the 1/50 that is the default, and then the part of a class that has the smallest
// hashes.
func heldOut(hash uint64, share float64) bool {
	const classSize = 1<<64/heldOutClasses + 1 // no class has more hashes
	class, within := hashClass(hash)
	if share == 0 {
		return class == 0
	}
	classes := float64(share * heldOutClasses)
	whole := math.Floor(classes)
	return float64(class) < whole ||
		float64(class) == whole && float64(within) < float64((classes-whole)*classSize)
}

// hashClass is a hash's class, and its number among the hashes of that class.
func hashClass(hash uint64) (class, within uint64) {
	return hash % heldOutClasses, hash / heldOutClasses
}

// byShare orders hashes as a growing share holds them out.
func byShare(a, b uint64) int {
	class, within := hashClass(a)
	c, w := hashClass(b)
	return cmp.Or(cmp.Compare(class, c), cmp.Compare(within, w))
}
