// Operations that move elements, or look at each on its own, of values that broadcast or lie
// apart.

extern "C" __global__ void copy_walk(PARAM Walk w, void *to, const void *from, int bytes) {
	EACH(i, w.n) {
		i64 at[2];
		places(w, i, at, 2);
		move(to, at[1], from, at[0], bytes);
	}
}

extern "C" __global__ void widen(float *to, const u16 *from, i64 n) {
	EACH(i, n) to[i] = from_bf16(from[i]);
}

extern "C" __global__ void narrow(u16 *to, const float *from, i64 n) {
	EACH(i, n) to[i] = to_bf16(from[i]);
}

extern "C" __global__ void wipe_bytes(u8 *to, i64 n) {
	EACH(i, n) to[i] = 0;
}

// An element of a value that may be of bfloat16.
__device__ __forceinline__ float element(const void *x, i64 at, int half) {
	return half ? from_bf16(((const u16 *)x)[at]) : ((const float *)x)[at];
}
// halves has a bit for each of out, a and b that is of bfloat16, the lowest first.
extern "C" __global__ void binary_walk(PARAM Walk w, int kind, int halves, void *out,
	const void *a, const void *b) {
	Instruction c;
	c.op = kind;
	EACH(i, w.n) {
		i64 at[2];
		places(w, i, at, 2);
		float y = apply(c, element(a, at[0], halves & 2), element(b, at[1], halves & 4));
		if (halves & 1) ((u16 *)out)[i] = to_bf16(y);
		else ((float *)out)[i] = y;
	}
}

template <class T> __device__ void dropout_shared_of(const Walk &w, T *out, const T *x,
	const int *seed, u64 salt, u32 limit, float scale) {
	u64 key = stream_key(seed, salt);
	EACH(i, w.n) {
		i64 at[1];
		places(w, i, at, 1);
		out[i] = philox_word(key, at[0]) <= limit ? x[i] * scale : 0.f;
	}
}
extern "C" __global__ void dropout_shared(PARAM Walk w, float *out, const float *x, const int *seed,
	u64 salt, u32 limit, float scale) {
	dropout_shared_of(w, out, x, seed, salt, limit, scale);
}
extern "C" __global__ void dropout_shared_16(PARAM Walk w, Half *out, const Half *x,
	const int *seed, u64 salt, u32 limit, float scale) {
	dropout_shared_of(w, out, x, seed, salt, limit, scale);
}
