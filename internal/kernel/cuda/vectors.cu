// What kernels of chains are made of that are written for one chain each: W elements of a thread
// at a time, i to i+W-1 of n, of which i is a multiple of W. The rest of such a kernel is written
// by chain.go; its arguments are those of the kernel that interprets, which it has the bits of.

// W elements as words, which are what a GPU loads and stores four of at a time.
template <class T, int W> struct alignas(W * sizeof(T)) Vector {
	u32 word[W * sizeof(T) / 4];
	__device__ __forceinline__ float at(int k) const {
		if (sizeof(T) == 4) return __uint_as_float(word[k]);
		return __uint_as_float(k & 1 ? word[k / 2] & 0xffff0000u : word[k / 2] << 16);
	}
	__device__ __forceinline__ void set(const float (&x)[W]) {
		constexpr int each = 4 / sizeof(T);
#pragma unroll
		for (int k = 0; k < W / each; k++)
			if (each == 1) word[k] = __float_as_uint(x[k]);
			else word[k] = to_bf16(x[each * k]) | (u32)to_bf16(x[each * k + each - 1]) << 16;
	}
};

// How an operand is spread: WHOLE has an element for each of the result's, of a CYCLE each is met
// once and then all again, HELD are met by several each, and of a HELD_CYCLE then all again. EVEN:
// W elements side by side are a vector's, or meet the same one. What is one for all is first.
enum { WHOLE, CYCLE, HELD, HELD_CYCLE, EVEN = 8 };

template <class T> __device__ __forceinline__ float first(const Spread &s) {
	return *(const T *)s.at;
}

template <class T, int W> __device__ __forceinline__ void vector(float (&x)[W], const T *from) {
	Vector<T, W> v = *(const Vector<T, W> *)from;
#pragma unroll
	for (int k = 0; k < W; k++) x[k] = v.at(k);
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
	float same = even && spread > CYCLE ? (float)from[at] : 0.f;
#pragma unroll
	for (int k = 0; k < W; k++) {
		if (even && spread > CYCLE) {
			x[k] = same;
			continue;
		}
		x[k] = i + k < n ? (float)from[at] : 0.f;
		if (spread == WHOLE || spread == CYCLE || ++rest == hold) at++, rest = 0;
		if (spread != WHOLE && spread != HELD && at == period) at = 0;
	}
}

template <class T, class I, int W>
__device__ __forceinline__ void put(T *to, const float (&x)[W], I i, I n) {
	if (i + W <= n && (u64)to % sizeof(Vector<T, W>) == 0) {
		Vector<T, W> v;
		v.set(x);
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
