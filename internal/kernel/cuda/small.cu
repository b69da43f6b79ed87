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
		double distance = pair.w[at[0] % 4 & 2], angle = pair.w[at[0] % 4 | 1];
		double r = sqrt(-2 * log64((distance + 1) / 4294967296.));
		Turn t = sincos64(6.283185307179586 * angle / 4294967296.);
		out[i] = (float)(r * (at[0] & 1 ? t.sin : t.cos));
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
// type is that of the elements: f32, i32, a byte, i64, f64.
extern "C" __global__ void compare(PARAM Walk w, u8 *out, const void *a, const void *b, int kind,
	int type) {
	EACH(i, w.n) {
		i64 at[2];
		places(w, i, at, 2);
#define CASE(n, T) \
		case n: out[i] = compared(kind, ((const T *)a)[at[0]], ((const T *)b)[at[1]]); break;
		switch (type) {
			CASE(0, float)
			CASE(1, int)
			CASE(2, u8)
			CASE(3, i64)
			CASE(4, double)
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
__device__ inline i64 to_integer(double x, double least, double most, i64 lo, i64 hi) {
	if (x >= most) return hi;
	if (x <= least) return lo;
	return x == x ? (i64)x : 0;
}
enum { F32 = 1, I32, U8, BF16, F16, I64, F64, BOOL };
__device__ inline void put_integer(void *out, i64 i, i64 v, int to) {
	switch (to) {
	case F64: ((double *)out)[i] = (double)v; break;
	case F32: ((float *)out)[i] = (float)v; break;
	case BF16: ((u16 *)out)[i] = to_bf16((float)v); break;
	case F16: ((u16 *)out)[i] = to_half((float)v); break;
	case I64: ((i64 *)out)[i] = v; break;
	case I32:
		if (v > 2147483647) v = 2147483647;
		((int *)out)[i] = (int)(v < -2147483648ll ? -2147483648ll : v);
		break;
	case U8: ((u8 *)out)[i] = (u8)(v > 255 ? 255 : v < 0 ? 0 : v); break;
	default: ((u8 *)out)[i] = v != 0;
	}
}
__device__ inline void put_number(void *out, i64 i, double v, int to) {
	switch (to) {
	case F64: ((double *)out)[i] = v; break;
	case F32: ((float *)out)[i] = (float)v; break;
	case BF16: ((u16 *)out)[i] = to_bf16((float)v); break;
	case F16: ((u16 *)out)[i] = to_half((float)v); break;
	case I64:
		((i64 *)out)[i] = to_integer(v, -9223372036854775808., 9223372036854775808.,
			(i64)0x8000000000000000ull, 0x7fffffffffffffffll);
		break;
	case I32:
		((int *)out)[i] = (int)to_integer(v, -2147483648., 2147483647., -2147483648ll, 2147483647);
		break;
	case U8: ((u8 *)out)[i] = (u8)to_integer(v, 0, 255, 0, 255); break;
	default: ((u8 *)out)[i] = v != 0;
	}
}
extern "C" __global__ void convert(void *out, const void *x, i64 n, int to, int from) {
	EACH(i, n) {
		switch (from) {
		case F64: put_number(out, i, ((const double *)x)[i], to); break;
		case F32: put_number(out, i, ((const float *)x)[i], to); break;
		case BF16:
			put_number(out, i, from_bf16(((const u16 *)x)[i]), to);
			break;
		case F16: put_number(out, i, from_half(((const u16 *)x)[i]), to); break;
		case I64: put_integer(out, i, ((const i64 *)x)[i], to); break;
		case I32: put_integer(out, i, ((const int *)x)[i], to); break;
		default: put_integer(out, i, ((const u8 *)x)[i], to);
		}
	}
}
// The first rows of each block of so many bytes, as many as counts say, and zeros.
extern "C" __global__ void keep_rows(u8 *out, const u8 *in, const int *counts, i64 n,
	i64 block, i64 row) {
	EACH(i, n) out[i] = i % block / row < counts[i / block] ? in[i] : 0;
}
