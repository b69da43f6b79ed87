// What kernels of chains are made of that are written for one chain each: W elements of a thread
// at a time, i to i+W-1 of n, of which i is a multiple of W. The rest of such a kernel is written
// by chain.go; its arguments are those of the kernel that interprets, which it has the bits of.

template <class T, int W> struct alignas(W * sizeof(T)) Vector { T e[W]; };

// How an operand is spread: WHOLE has an element for each of the result's, ONE is the same for
// all, of a CYCLE each is met once and then all again, HELD are met by several each, in CYCLES
// of HELD all again. EVEN: W elements side by side are a vector's, or meet the same one.
enum { WHOLE, ONE, CYCLE, HELD, HELD_CYCLE, EVEN = 8 };

template <class T> __device__ __forceinline__ float first(const Spread &s) {
	return *(const T *)s.at;
}

template <class T, int W> __device__ __forceinline__ void vector(float (&x)[W], const T *from) {
	Vector<T, W> v = *(const Vector<T, W> *)from;
#pragma unroll
	for (int k = 0; k < W; k++) x[k] = v.e[k];
}

// Elements of an operand, 0 for those that are none. I is u32 where all places are below 2^31.
template <int SPREAD, class T, class I, int W>
__device__ __forceinline__ void take(float (&x)[W], const Spread &s, I i, I n) {
	const T *from = (const T *)s.at;
	constexpr int spread = SPREAD & ~EVEN;
	constexpr bool even = SPREAD & EVEN;
	I at = i, rest = 0, hold = (I)s.hold, period = (I)s.period;
	if (spread == HELD || spread == HELD_CYCLE) at = i / hold, rest = i - at * hold;
	if (spread == CYCLE || spread == HELD_CYCLE) at = at % period;
	if (spread == WHOLE || spread == CYCLE && even)
		if (i + W <= n && s.at % sizeof(Vector<T, W>) == 0) return vector(x, from + at);
	if (even && spread != CYCLE) {
		float same = from[at];
#pragma unroll
		for (int k = 0; k < W; k++) x[k] = same;
		return;
	}
#pragma unroll
	for (int k = 0; k < W; k++) {
		x[k] = i + k < n ? (float)from[at] : 0.f;
		if (spread == WHOLE || spread == CYCLE || ++rest == hold) at++, rest = 0;
		if (spread != WHOLE && spread != HELD && at == period) at = 0;
	}
}

template <class T, class I, int W>
__device__ __forceinline__ void put(T *to, const float (&x)[W], I i, I n) {
	if (i + W <= n && (u64)to % sizeof(Vector<T, W>) == 0) {
		Vector<T, W> v;
#pragma unroll
		for (int k = 0; k < W; k++) v.e[k] = x[k];
		*(Vector<T, W> *)(to + i) = v;
		return;
	}
#pragma unroll
	for (int k = 0; k < W; k++)
		if (i + k < n) to[i + k] = x[k];
}

// The random words of W elements from e on of a stream, where the words of four are one block's:
// e is a multiple of 4.
template <int W> __device__ __forceinline__ void words_of_blocks(u32 (&w)[W], u64 key, u64 e) {
#pragma unroll
	for (int k = 0; k < W; k += 4) {
		Words four = philox(key, e / 4 + k / 4);
#pragma unroll
		for (int j = 0; j < 4; j++) w[k + j] = four.w[j];
	}
}
template <int W> __device__ __forceinline__ void words_from(u32 (&w)[W], u64 key, u64 e) {
#pragma unroll
	for (int k = 0; k < W; k += 4) {
		Words four = philox_from(key, e + k);
#pragma unroll
		for (int j = 0; j < 4; j++) w[k + j] = four.w[j];
	}
}
// Those of elements that are in a window of others.
template <int W> __device__ __forceinline__ void words_within(u32 (&w)[W], u64 key, u64 e,
	const Walk &window) {
#pragma unroll
	for (int k = 0; k < W; k++) {
		i64 at[1];
		places(window, e + k, at, 1);
		w[k] = philox_word(key, at[0]);
	}
}
