package conv

// take copies every step-th element of src to dst.
func take(dst, src []float32, step int) {
	i := 0
	switch step {
	case 1:
		i = copy(dst, src)
	case 2:
		i = evensFast(dst, src)
	}
	for ; i < len(dst); i++ {
		dst[i] = src[i*step]
	}
}

// put is the reverse of take.
func put(dst, src []float32, step int) {
	if step == 1 {
		copy(dst, src)
		return
	}
	for i, x := range src {
		dst[i*step] = x
	}
}

// interleave writes the elements of even and odd in turn, and fills dst.
func interleave(dst, even, odd []float32) {
	i := interleaveFast(dst, even, odd)
	for ; i < len(dst)/2; i++ {
		dst[2*i], dst[2*i+1] = even[i], odd[i]
	}
	if len(dst)%2 == 1 {
		dst[len(dst)-1] = even[i]
	}
}

// zero clears n elements, step apart.
func zero(dst []float32, n, step int) {
	for i := 0; i < n; i++ { // mostly too few for a call of clear
		dst[i*step] = 0
	}
}
