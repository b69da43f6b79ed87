//go:build !amd64

package conv

// evensFast and interleaveFast leave everything to their callers.
func evensFast(dst, src []float32) int            { return 0 }
func interleaveFast(dst, even, odd []float32) int { return 0 }
