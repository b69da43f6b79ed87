// Masks, noise, comparisons, conversions: a thread for each element.

extern "C" __global__ void padding_mask(float *out, const int *ids, i64 n) {
	EACH(i, n) out[i] = ids[i] == 0 ? -1e9f : 0.f;
}
extern "C" __global__ void causal_mask(float *out, i64 n) {
	EACH(i, n * n) out[i] = i % n > i / n ? -1e9f : 0.f;
}
extern "C" __global__ void causal_mask_at(float *out, const int *position, i64 n, i64 queries,
	i64 keys) {
	EACH(i, n) {
		i64 row = i / keys;
		out[i] = i % keys > position[row / queries] + row % queries ? -1e9f : 0.f;
	}
}
extern "C" __global__ void not_zero(float *out, const int *ids, i64 n) {
	EACH(i, n) out[i] = ids[i] != 0;
}
extern "C" __global__ void not_true(u8 *out, const u8 *x, i64 n) {
	EACH(i, n) out[i] = x[i] == 0;
}

// The walk is over elements, with their places in the stream.
extern "C" __global__ void draw(PARAM Walk w, float *out, const int *seed, u64 salt, int normal) {
	u64 key = stream_key(seed, salt);
	EACH(i, w.n) {
		i64 at[1];
		places(w, i, at, 1);
		if (!normal) {
			out[i] = unit(philox_word(key, at[0]));
			continue;
		}
		Words pair = philox(key, at[0] / 4);
		double distance = pair.at(at[0] & 2), angle = pair.at(at[0] & 2 | 1);
		double r = sqrt(-2 * log64((distance + 1) / 4294967296.));
		Turn t = sincos64(6.283185307179586 * angle / 4294967296.);
		out[i] = (float)(r * (at[0] & 1 ? t.sin : t.cos));
	}
}

__device__ inline u32 mix32(u32 x) {
	x = (x ^ x >> 16) * 0x85ebca6bu;
	x = (x ^ x >> 13) * 0xc2b2ae35u;
	return x ^ x >> 16;
}
extern "C" __global__ void fold_in(int *out, const int *seed, const int *k) {
	EACH(i, 1) {
		u32 run = mix32((u32)seed[0] + 0x9e3779b9u * ((u32)k[0] + 1));
		out[0] = (int)run;
		out[1] = seed[1] ^ (int)mix32(run ^ 0x85ebca6bu);
	}
}

template <class T> __device__ bool compared(int kind, T a, T b) {
	switch (kind) {
	case 0: return a == b;
	case 1: return a != b;
	case 2: return a < b;
	}
	return a <= b;
}
extern "C" __global__ void compare(PARAM Walk w, u8 *out, const void *a, const void *b, int kind,
	int type) {
	EACH(i, w.n) {
		i64 at[2];
		places(w, i, at, 2);
#define CASE(n, T) \
		case n: out[i] = compared(kind, ((const T *)a)[at[0]], ((const T *)b)[at[1]]); break;
		switch (type) {
			INTEGERS(CASE)
			CASE(BOOL, u8)
			CASE(F32, float)
			CASE(F64, double)
		}
#undef CASE
	}
}
extern "C" __global__ void logic(PARAM Walk w, u8 *out, const u8 *a, const u8 *b, int kind) {
	EACH(i, w.n) {
		i64 at[2];
		places(w, i, at, 2);
		bool x = a[at[0]] != 0, y = b[at[1]] != 0;
		out[i] = kind == 0 ? x && y : kind == 1 ? x || y : x != y;
	}
}
extern "C" __global__ void where(PARAM Walk w, void *out, const u8 *condition, const void *a,
	const void *b, int bytes) {
	EACH(i, w.n) {
		i64 at[3];
		places(w, i, at, 3);
		if (condition[at[0]]) move(out, i, a, at[1], bytes);
		else move(out, i, b, at[2], bytes);
	}
}
extern "C" __global__ void triangle(void *out, const void *x, i64 total, i64 m, i64 n,
	i64 diagonal, int upper, int bytes) {
	EACH(i, total) {
		i64 row = i / n % m, column = i % n;
		if (upper ? column >= row + diagonal : column <= row + diagonal) move(out, i, x, i, bytes);
		else wipe(out, i, bytes);
	}
}

// Conversions. Numbers are read as a double or an integer, whichever has them exactly.
__device__ inline float from_half(u16 h) {
	u32 sign = (u32)(h & 0x8000) << 16, e = h >> 10 & 31, f = h & 1023;
	if (e == 31) return __uint_as_float(sign | 0x7f800000 | f << 13 | (f ? 0x400000 : 0));
	if (e) return __uint_as_float(sign | (e + 112) << 23 | f << 13);
	float v = f * (1.f / (1 << 24));
	return __uint_as_float(sign | __float_as_uint(v));
}
__device__ inline u16 to_half(float x) {
	u32 u = __float_as_uint(x), sign = u >> 16 & 0x8000, a = u & 0x7fffffff;
	if (a > 0x7f800000) return (u16)(sign | 0x7e00 | (a >> 13 & 0x1ff));
	if (a >= 0x477ff000) return (u16)(sign | 0x7c00);
	if (a >= 0x38800000) return (u16)(sign | (a - 0x38000000 + 0xfff + (a >> 13 & 1)) >> 13);
	return (u16)(sign | (u32)rintf(__uint_as_float(a) * (1 << 24)));
}
template <class T> struct Limits {
	static constexpr bool is_unsigned = (T)-1 > (T)0;
	static constexpr T most = (T)(is_unsigned ? ~0ull : ~0ull >> (65 - 8 * sizeof(T)));
	static constexpr T least = is_unsigned ? (T)0 : (T)(-most - 1);
};
// The integer, or the number towards zero, or what of the type is nearest to it.
template <class T, class S> __device__ inline T fitted(S v) {
	T y = (T)v;
	if ((S)y == v && negative(y) == negative(v)) return y;
	return negative(v) ? Limits<T>::least : Limits<T>::most;
}
template <class T> __device__ inline T fitted(double v) {
	if (v >= (double)Limits<T>::most) return Limits<T>::most;
	if (v <= (double)Limits<T>::least) return Limits<T>::least;
	return v == v ? (T)v : 0;
}
template <class S> __device__ inline void put_as(void *out, i64 i, S v, int to) {
	switch (to) {
#define CASE(n, T) case n: ((T *)out)[i] = fitted<T>(v); break;
		INTEGERS(CASE)
#undef CASE
	case F64: ((double *)out)[i] = (double)v; break;
	case F32: ((float *)out)[i] = (float)v; break;
	case BF16: ((u16 *)out)[i] = to_bf16((float)v); break;
	case F16: ((u16 *)out)[i] = to_half((float)v); break;
	default: ((u8 *)out)[i] = v != 0;
	}
}
extern "C" __global__ void convert(void *out, const void *x, i64 n, int to, int from) {
	EACH(i, n) {
		switch (from) {
#define CASE(n, T) case n: put_as(out, i, ((const T *)x)[i], to); break;
			INTEGERS(CASE)
			CASE(F64, double)
			CASE(BOOL, u8)
#undef CASE
		case F32: put_as(out, i, (double)((const float *)x)[i], to); break;
		case BF16: put_as(out, i, (double)from_bf16(((const u16 *)x)[i]), to); break;
		case F16: put_as(out, i, (double)from_half(((const u16 *)x)[i]), to); break;
		}
	}
}
// The first rows of each block of so many bytes, as many as counts say, and zeros.
extern "C" __global__ void keep_rows(u8 *out, const u8 *in, const int *counts, i64 n,
	i64 block, i64 row) {
	EACH(i, n) out[i] = i % block / row < counts[i / block] ? in[i] : 0;
}
