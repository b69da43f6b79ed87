package conv

import "github.com/gomem/gomem/internal/kernel/vec"

// Rows of a matrix in memory are a pitch apart. The functions here panic if a row
// is not in its slice, and touch nothing outside of rows.

// takeRows copies every step-th element of rows of src to n elements of rows of
// dst.
func takeRows(dst []float32, dstPitch int, src []float32, srcPitch, rows, n, step int) {
	if rows <= 0 || n <= 0 {
		return
	}
	dst, src = dst[:(rows-1)*dstPitch+n], src[:(rows-1)*srcPitch+(n-1)*step+1]
	if step == 1 && dstPitch == n && srcPitch == n {
		copy(dst, src)
		return
	}
	if takeRowsFast(dst, dstPitch, src, srcPitch, rows, n, step) {
		return
	}
	for i := range rows {
		to, from := dst[i*dstPitch:][:n], src[i*srcPitch:]
		for j := range to {
			to[j] = from[j*step]
		}
	}
}

// putRows is the reverse of takeRows.
func putRows(dst []float32, dstPitch int, src []float32, srcPitch, rows, n, step int) {
	if step == 1 {
		takeRows(dst, dstPitch, src, srcPitch, rows, n, 1)
		return
	}
	for i := range rows {
		to := dst[i*dstPitch:]
		for j, x := range src[i*srcPitch:][:n] {
			to[j*step] = x
		}
	}
}

// clearRows clears every step-th element of rows, n of each.
func clearRows(dst []float32, pitch, rows, n, step int) {
	for i := range rows {
		row := dst[i*pitch:]
		if step == 1 {
			clear(row[:n])
			continue
		}
		for j := range n {
			row[j*step] = 0
		}
	}
}

// interleaveRows writes elements of even and odd in turn to n elements of rows of
// dst.
func interleaveRows(dst []float32, dstPitch int, even []float32, evenPitch int, odd []float32,
	oddPitch, rows, n int) {
	if rows <= 0 || n <= 0 {
		return
	}
	dst, even, odd = dst[:(rows-1)*dstPitch+n], even[:(rows-1)*evenPitch+(n+1)/2],
		odd[:(rows-1)*oddPitch+n/2]
	pairs := n / 2
	if pairs > 0 && !interleaveRowsFast(dst, dstPitch, even, evenPitch, odd, oddPitch, rows,
		pairs) {
		putRows(dst, dstPitch, even, evenPitch, rows, pairs, 2)
		putRows(dst[1:], dstPitch, odd, oddPitch, rows, pairs, 2)
	}
	if n%2 == 1 {
		putRows(dst[n-1:], dstPitch, even[pairs:], evenPitch, rows, 1, 2)
	}
}

// sumTaps writes to dst the sum over the terms of filter[k]·src[at:], at least one,
// added up in their order.
func sumTaps(dst, src, filter []float32, terms []term) {
	for _, t := range terms {
		_, _ = filter[t.k], src[t.at:][:len(dst)]
	}
	if tapsFast(dst, src, filter, terms) {
		return
	}
	for i, t := range terms {
		if i == 0 {
			vec.MulScalar(dst, src[t.at:][:len(dst)], filter[t.k])
			continue
		}
		vec.Axpy(dst, filter[t.k], src[t.at:][:len(dst)])
	}
}
