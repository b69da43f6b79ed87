// Rows of few bits, as package quant has them: an element at a time.

enum { Q8_0 = 1, Q4_0, Q4_K, Q6_K, NF4, ROWS_BF16, ROWS_F16 };

__device__ __forceinline__ u16 two(const u8 *p) { return (u16)(p[0] | p[1] << 8); }

// A number of binary16.
__device__ inline float from_f16(u16 h) {
	u32 sign = (u32)(h & 0x8000) << 16, e = h >> 10 & 31, m = h & 1023;
	if (e == 31) return __uint_as_float(sign | 0x7f800000 | m << 13 | (m ? 0x400000 : 0));
	if (e) return __uint_as_float(sign | (e + 112) << 23 | m << 13);
	float x = (float)m * __uint_as_float(103u << 23); // 2^-24
	return sign ? -x : x;
}

__device__ __constant__ const float quantiles[16] = {
	-1.0f, -0.6961928009986877f, -0.5250730514526367f, -0.39491748809814453f,
	-0.28444138169288635f, -0.18477343022823334f, -0.09105003625154495f, 0.0f,
	0.07958029955625534f, 0.16093020141124725f, 0.24611230194568634f, 0.33791524171829224f,
	0.44070982933044434f, 0.5626170039176941f, 0.7229568362236023f, 1.0f};

__device__ __forceinline__ float float_at(const u8 *p) {
	return __uint_as_float((u32)two(p) | (u32)two(p + 2) << 16);
}

// Element i of a row.
__device__ inline float packed_at(int format, const u8 *row, i64 i) {
	switch (format) {
	case Q8_0: {
		const u8 *b = row + i / 32 * 34;
		return (float)(signed char)b[2 + i % 32] * from_f16(two(b));
	}
	case Q4_0: {
		const u8 *b = row + i / 32 * 18;
		int k = (int)(i % 32);
		return from_f16(two(b)) * (float)((b[2 + k % 16] >> k / 16 * 4 & 15) - 8);
	}
	case Q4_K: {
		const u8 *b = row + i / 256 * 144, *s = b + 4;
		int k = (int)(i % 256), p = k / 32, step, floor;
		if (p < 4) step = s[p] & 63, floor = s[4 + p] & 63;
		else step = (s[4 + p] & 15) | s[p - 4] >> 6 << 4, floor = s[4 + p] >> 4 | s[p] >> 6 << 4;
		float d = from_f16(two(b)) * (float)step, m = from_f16(two(b + 2)) * (float)floor;
		return d * (float)(b[16 + k / 64 * 32 + k % 32] >> (p & 1) * 4 & 15) - m;
	}
	case Q6_K: {
		const u8 *b = row + i / 256 * 210;
		int k = (int)(i % 256), half = k / 128, r = k % 128;
		int q = (b[64 * half + r % 64] >> r / 64 * 4 & 15) |
			(b[128 + 32 * half + r % 32] >> r / 32 * 2 & 3) << 4;
		return from_f16(two(b + 208)) * (float)(signed char)b[192 + k / 16] * (float)(q - 32);
	}
	case NF4: {
		const u8 *b = row + 8 + i / 64 * 33;
		int k = (int)(i % 64);
		float scale = float_at(row) + float_at(row + 4) * (float)b[0];
		return quantiles[b[1 + k % 32] >> k / 32 * 4 & 15] * scale;
	}
	case ROWS_BF16: return from_bf16(((const u16 *)row)[i]);
	}
	return from_f16(((const u16 *)row)[i]);
}

// The first of rows that are between two numbers, and how many, of n.
__device__ inline i64 between_rows(const int *between, i64 *n) {
	if (!between) return 0;
	i64 lo = between[0] > 0 ? between[0] : 0, hi = between[1] < *n ? between[1] : *n;
	*n = hi > lo ? hi - lo : 0;
	return lo;
}

// Products of n rows of x, or of those of them that are between two numbers, with all rows of w, 8
// rows of x by one of w a warp.
#define PACKED_ROWS 8
extern "C" __global__ void packed_product(float *out, const float *x, const u8 *w,
	const int *between, i64 n, i64 rows, i64 width, i64 bytes, int format) {
	i64 start = between_rows(between, &n);
	out += start * rows, x += start * width;
	i64 groups = (n + PACKED_ROWS - 1) / PACKED_ROWS, lane = threadIdx.x % 32;
	for (i64 t = blockIdx.x * 8 + threadIdx.x / 32; t < groups * rows; t += (i64)gridDim.x * 8) {
		i64 first = t / rows * PACKED_ROWS, j = t % rows;
		float sums[PACKED_ROWS] = {};
		for (i64 k = lane; k < width; k += 32) {
			float v = packed_at(format, w + j * bytes, k);
#pragma unroll
			for (int r = 0; r < PACKED_ROWS; r++)
				if (first + r < n) sums[r] = fmaf(x[(first + r) * width + k], v, sums[r]);
		}
#pragma unroll
		for (int r = 0; r < PACKED_ROWS; r++) {
			float sum = fold_warp<Sum<float>>(sums[r]);
			if (lane == 0 && first + r < n) out[(first + r) * rows + j] = sum;
		}
	}
}

// Products of such rows of x with the columns of w, 8 rows of x by one column a thread.
extern "C" __global__ void packed_product_back(float *out, const float *x, const u8 *w,
	const int *between, i64 n, i64 rows, i64 width, i64 bytes, int format) {
	i64 start = between_rows(between, &n);
	out += start * width, x += start * rows;
	i64 groups = (n + PACKED_ROWS - 1) / PACKED_ROWS;
	EACH(t, groups * width) {
		i64 first = t / width * PACKED_ROWS, k = t % width;
		float sums[PACKED_ROWS] = {};
		for (i64 j = 0; j < rows; j++) {
			float v = packed_at(format, w + j * bytes, k);
#pragma unroll
			for (int r = 0; r < PACKED_ROWS; r++)
				if (first + r < n) sums[r] = fmaf(x[(first + r) * rows + j], v, sums[r]);
		}
#pragma unroll
		for (int r = 0; r < PACKED_ROWS; r++)
			if (first + r < n) out[(first + r) * width + k] = sums[r];
	}
}

// Rows of a table by index, zero where it is outside.
extern "C" __global__ void packed_rows(float *out, const u8 *table, const int *index, i64 count,
	i64 rows, i64 width, i64 bytes, i64 first, int format) {
	EACH(i, count * width) {
		i64 at = index[i / width] - first;
		out[i] = at >= 0 && at < rows ? packed_at(format, table + at * bytes, i % width) : 0.f;
	}
}
