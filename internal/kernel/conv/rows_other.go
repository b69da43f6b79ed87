//go:build !amd64 || portable

package conv

// takeRowsFast, interleaveRowsFast and tapsFast leave everything to their callers.
func takeRowsFast(dst []float32, dstPitch int, src []float32, srcPitch, rows, n, step int) bool {
	return false
}

func interleaveRowsFast(dst []float32, dstPitch int, even []float32, evenPitch int, odd []float32,
	oddPitch, rows, pairs int) bool {
	return false
}

func tapsFast(dst, src, filter []float32, terms []term) bool { return false }
