// Reductions, along rows by teams, and down columns by a thread for each.

// Part p of so many of row r is elements p·per and on.
struct Parts {
	i64 rows, n, per, parts;
	__device__ i64 lo(i64 i) const { return i % parts * per; }
	__device__ i64 hi(i64 i) const { return lo(i) + per < n ? lo(i) + per : n; }
};

// Sums have the host's order, and so its bits (internal/kernel/vec): element i is added in lane
// i mod 64, of which each thread of a warp has two, and lanes are added by halves. Loads come
// many at a time ahead of the additions, which wait for each other.
template <class L, class A> __device__ float sum_lanes(i64 n, L load, A add) {
	const int ahead = 16;
	i64 i = threadIdx.x % 32;
	float a = 0, b = 0;
	for (; i + 64 * ahead - 32 < n; i += 64 * ahead) {
		float v[ahead], w[ahead];
		for (int k = 0; k < ahead; k++) v[k] = load(i + 64 * k), w[k] = load(i + 64 * k + 32);
		for (int k = 0; k < ahead; k++) a = add(a, v[k]), b = add(b, w[k]);
	}
	for (; i < n; i += 64) {
		a = add(a, load(i));
		if (i + 32 < n) b = add(b, load(i + 32));
	}
	return fold_warp<Sum<float>>(a + b);
}
// Spans of so many elements are added up by themselves, and then their sums, in order.
template <class T, class A> __device__ float sum_spans(const T *x, i64 n, A add) {
	const i64 span = 65536;
	float s = 0;
	for (i64 at = 0; at < n; at += span)
		s += sum_lanes(n - at < span ? n - at : span, [=](i64 i) -> float { return x[at + i]; },
			add);
	return s;
}
struct Squared {
	__device__ float operator()(float s, float v) const { return fmaf(v, v, s); }
};
template <class T, class A>
__device__ void sum_parts(const Parts &p, float *out, const T *x, A add) {
	Team t = team(0);
	for (i64 r = t.first; r < p.rows * p.parts; r += t.step) {
		float s = sum_spans(x + r / p.parts * p.n + p.lo(r), p.hi(r) - p.lo(r), add);
		if (t.lane == 0) out[r] = s;
	}
}
struct Added {
	__device__ float operator()(float s, float v) const { return s + v; }
};
extern "C" __global__ void __launch_bounds__(256) sum_rows(Parts p, float *out, const float *x) {
	sum_parts(p, out, x, Added());
}
extern "C" __global__ void __launch_bounds__(256) sum_rows_16(Parts p, float *out, const Half *x) {
	sum_parts(p, out, x, Added());
}
// Squares are summed by spans; and, if wide is not null, divided by 2^160, which does not overflow:
// of a span whose sum does, by a warp's threads alike in 64 bits, one square after the other.
template <class T>
__device__ void squares_of(const Parts &p, float *out, float *wide, const T *x) {
	const double scale = 0x1p-160;
	sum_parts(p, out, x, Squared());
	Team t = team(0);
	for (i64 r = t.first; wide && r < p.parts; r += t.step) {
		__syncwarp();
		double s = out[r];
		if (!(out[r] <= 3.4028235e38f)) {
			s = 0;
			for (i64 i = p.lo(r); i < p.hi(r); i++) s += (double)(float)x[i] * (double)(float)x[i];
		}
		if (t.lane == 0) wide[r] = (float)(s * scale);
	}
}
extern "C" __global__ void __launch_bounds__(256) sum_squares(Parts p, float *out, float *wide,
	const float *x) {
	squares_of(p, out, wide, x);
}
extern "C" __global__ void __launch_bounds__(256) sum_squares_16(Parts p, float *out, float *wide,
	const Half *x) {
	squares_of(p, out, wide, x);
}
// What something is multiplied by so that its norm is a limit at most, of its squares as they are
// and divided by 2^160.
extern "C" __global__ void norm_factor(float *out, const float *squares, float limit) {
	if (blockIdx.x || threadIdx.x) return;
	if (squares[0] > 3.4028235e38f) {
		*out = (float)((double)limit / (sqrt((double)squares[1]) * 0x1p80));
		return;
	}
	*out = limit / max_of(sqrtf(squares[0]), limit);
}
// The sum of n numbers, a step apart, in 64 bits, which thread 0 of a block of 256 gets: number i is
// added in lane i mod 1024, and lanes are added by halves, as the host does.
__device__ inline double sum_wide(const float *x, i64 n, i64 step) {
	__shared__ double lanes[256];
	int me = threadIdx.x;
	double s[4] = {};
	for (i64 i = me; i < n; i += 1024)
#pragma unroll
		for (int k = 0; k < 4; k++)
			if (i + 256 * k < n) s[k] += x[(i + 256 * k) * step];
	lanes[me] = s[0] + s[2] + (s[1] + s[3]);
	for (int width = 128; width; width /= 2) {
		__syncthreads();
		if (me < width) lanes[me] += lanes[me + width];
	}
	double all = me == 0 ? lanes[0] : 0;
	__syncthreads(); // before the lanes are written again
	return all;
}
extern "C" __global__ void __launch_bounds__(256) sum_total(float *out, const float *x, i64 n) {
	if (blockIdx.x) return;
	float s = (float)sum_wide(x, n, 1);
	if (threadIdx.x == 0) *out = s;
}

// Rows of inner elements are added so many beside each other, as the host does with short ones:
// each element of so many rows has a thread, and their sums are added by halves.
template <class T>
__device__ void sum_beside_of(const Parts &p, float *out, const T *x, i64 inner, i64 side) {
	__shared__ float lanes[256];
	for (i64 r = blockIdx.x; r < p.rows * p.parts; r += gridDim.x) {
		i64 n = (p.hi(r) - p.lo(r)) * inner, most = side * inner, width = inner, me = threadIdx.x;
		const T *from = x + (r / p.parts * p.n + p.lo(r)) * inner;
		if (most > n) most = n;
		while (2 * width <= most) width *= 2;
		if (me < width && me < n) {
			float s = from[me];
			for (i64 i = me + width; i < n; i += width) s += from[i];
			lanes[me] = s;
		}
		for (; width > inner; width /= 2) {
			__syncthreads();
			if (me < width / 2) lanes[me] += lanes[me + width / 2];
		}
		__syncthreads();
		if (me < inner && me < n) out[r * inner + me] = lanes[me];
		__syncthreads(); // before the lanes are written again
	}
}
extern "C" __global__ void __launch_bounds__(256) sum_beside(Parts p, float *out, const float *x,
	i64 inner, i64 side) {
	sum_beside_of(p, out, x, inner, side);
}
extern "C" __global__ void __launch_bounds__(256) sum_beside_16(Parts p, float *out, const Half *x,
	i64 inner, i64 side) {
	sum_beside_of(p, out, x, inner, side);
}

// Rows of inner elements are added one after the other, in parts.
template <class T>
__device__ void sum_columns_of(const Parts &p, float *out, const T *x, i64 inner) {
	EACH(i, p.rows * p.parts * inner) {
		i64 part = i / inner, lo = p.lo(part), hi = p.hi(part);
		const T *from = x + part / p.parts * p.n * inner + i % inner;
		float s = lo < hi ? (float)from[lo * inner] : 0.f;
		i64 k = lo + 1;
		const int ahead = 16;
		for (; k + ahead <= hi; k += ahead) {
			float v[ahead];
			for (int j = 0; j < ahead; j++) v[j] = from[(k + j) * inner];
			for (int j = 0; j < ahead; j++) s += v[j];
		}
		for (; k < hi; k++) s += from[k * inner];
		out[i] = s;
	}
}
extern "C" __global__ void sum_columns(Parts p, float *out, const float *x, i64 inner) {
	sum_columns_of(p, out, x, inner);
}
extern "C" __global__ void sum_columns_16(Parts p, float *out, const Half *x, i64 inner) {
	sum_columns_of(p, out, x, inner);
}

// Rows from and following, count of them, are added to the sums of their blocks.
extern "C" __global__ void sum_part(float *out, const float *kept, const float *x, i64 blocks,
	i64 per, i64 from, i64 count, i64 inner) {
	EACH(i, blocks * inner) {
		i64 b = i / inner, lo = b * per - from, hi = lo + per < count ? lo + per : count;
		bool begun = b * per < from;
		float s = begun ? kept[i] : 0.f;
		if (lo < 0) lo = 0;
		for (i64 k = lo; k < hi; k++) {
			float v = x[k * inner + i % inner];
			s = k == lo && !begun ? v : s + v;
		}
		out[i] = s;
	}
}

template <class T> struct Extreme {
	bool least;
	__device__ T two(T a, T b) const { return (least ? a < b : a > b) || a != a ? a : b; }
};
template <class T> __device__ void extreme_all(const Parts &p, T *out, const T *x, i64 inner,
	bool least) {
	Extreme<T> e{least};
	EACH(i, p.rows * p.parts * inner) {
		i64 part = i / inner, lo = p.lo(part), hi = p.hi(part);
		const T *from = x + part / p.parts * p.n * inner + i % inner;
		T best = from[lo * inner];
		for (i64 k = lo + 1; k < hi; k++) best = e.two(from[k * inner], best);
		out[i] = best;
	}
}
// kind is 0 for f32, 1 for i32, 2 for bytes.
extern "C" __global__ void extreme(Parts p, void *out, const void *x, i64 inner, int least,
	int kind) {
	switch (kind) {
	case 0: extreme_all(p, (float *)out, (const float *)x, inner, least); break;
	case 1: extreme_all(p, (int *)out, (const int *)x, inner, least); break;
	default: extreme_all(p, (u8 *)out, (const u8 *)x, inner, least);
	}
}

// A reduction of numbers, one after the other; of none, a product is 1 and a sum 0.
template <class T> __device__ void fold_all(const Parts &p, T *out, const T *x, i64 inner, int op) {
	EACH(i, p.rows * p.parts * inner) {
		i64 part = i / inner, lo = p.lo(part), hi = p.hi(part);
		const T *from = x + part / p.parts * p.n * inner + i % inner;
		T v = lo < hi ? from[lo * inner] : (T)(op == MUL);
		for (i64 k = lo + 1; k < hi; k++) v = number<T>(op, v, from[k * inner]);
		out[i] = v;
	}
}
extern "C" __global__ void fold_numbers(Parts p, void *out, const void *x, i64 inner, int op,
	int type) {
	switch (type) {
#define CASE(n, T) case n: fold_all(p, (T *)out, (const T *)x, inner, op); break;
		INTEGERS(CASE)
		CASE(F64, double)
#undef CASE
	}
}

// The best element of a team and where it is, the first of equals.
template <class T> struct Best {
	T value;
	int at;
	bool least;
	__device__ bool ahead(T a, T b) const {
		return (least ? a < b : a > b) || (a != a && b == b);
	}
	__device__ void take(T v, int i) {
		if (i < 0) return;
		if (at < 0 || ahead(v, value) || (!ahead(value, v) && i < at)) value = v, at = i;
	}
};
template <class T> __device__ void best_of(Team t, Best<T> &b) {
	__shared__ T values[32];
	__shared__ int ats[32];
	for (int round = 0; round < 2; round++) {
		for (int o = 16; o; o >>= 1) {
			T v = __shfl_xor_sync(0xffffffffu, b.value, o);
			b.take(v, __shfl_xor_sync(0xffffffffu, b.at, o));
		}
		if (t.size == 32 || round == 1) return;
		__syncthreads();
		if (threadIdx.x % 32 == 0) values[threadIdx.x / 32] = b.value, ats[threadIdx.x / 32] = b.at;
		__syncthreads();
		int lane = threadIdx.x % 32;
		b.value = values[lane < t.size / 32 ? lane : 0];
		b.at = ats[lane < t.size / 32 ? lane : 0];
	}
}
template <class T> __device__ void arg_all(int *out, const T *x, i64 rows, i64 n, int least,
	int wide) {
	Team t = team(wide);
	for (i64 r = t.first; r < rows; r += t.step) {
		Best<T> b{0, -1, least != 0};
		for (i64 i = t.lane; i < n; i += t.size) b.take(x[r * n + i], (int)i);
		best_of(t, b);
		if (t.lane == 0) out[r] = b.at;
	}
}
extern "C" __global__ void __launch_bounds__(256) arg_rows(int *out, const void *x, i64 rows,
	i64 n, int least, int kind, int wide) {
	if (kind == 0) arg_all(out, (const float *)x, rows, n, least, wide);
	else arg_all(out, (const int *)x, rows, n, least, wide);
}
template <class T> __device__ void arg_down(int *out, const T *x, i64 outer, i64 n, i64 inner,
	int least) {
	EACH(i, outer * inner) {
		const T *from = x + i / inner * n * inner + i % inner;
		Best<T> b{0, -1, least != 0};
		for (i64 k = 0; k < n; k++) b.take(from[k * inner], (int)k);
		out[i] = b.at;
	}
}
extern "C" __global__ void arg_columns(int *out, const void *x, i64 outer, i64 n, i64 inner,
	int least, int type) {
	switch (type) {
#define CASE(t, T) case t: arg_down(out, (const T *)x, outer, n, inner, least); break;
		INTEGERS(CASE)
		CASE(BOOL, u8)
		CASE(F32, float)
		CASE(F64, double)
#undef CASE
	}
}

extern "C" __global__ void product(float *out, const float *x, i64 outer, i64 n, i64 inner) {
	EACH(i, outer * inner) {
		const float *from = x + i / inner * n * inner + i % inner;
		double p = 1;
		for (i64 k = 0; k < n; k++) p *= from[k * inner];
		out[i] = (float)p;
	}
}

// A number and how fast it changes.
struct Moving {
	double value, rate;
};
__device__ __forceinline__ Moving times(Moving a, Moving b) {
	return Moving{a.value * b.value, a.value * b.rate + a.rate * b.value};
}
// Of every element the product of all others in its column, or how fast that changes along a
// tangent; before has the products of those before each.
extern "C" __global__ void others(float *out, const float *x, const float *tangent,
	Moving *before, i64 outer, i64 n, i64 inner) {
	EACH(i, outer * inner) {
		i64 first = i / inner * n * inner + i % inner;
		Moving p{1, 0};
		for (i64 k = 0; k < n; k++) {
			i64 at = first + k * inner;
			before[at] = p;
			p = times(p, Moving{x[at], tangent ? tangent[at] : 0.});
		}
		p = Moving{1, 0};
		for (i64 k = n - 1; k >= 0; k--) {
			i64 at = first + k * inner;
			Moving all = times(before[at], p);
			p = times(p, Moving{x[at], tangent ? tangent[at] : 0.});
			out[at] = (float)(tangent ? all.rate : all.value);
		}
	}
}

template <class T, class S> __device__ void cumulate(T *out, const T *x, i64 outer, i64 n,
	i64 inner, int reverse, int exclusive) {
	EACH(i, outer * inner) {
		i64 first = i / inner * n * inner + i % inner;
		S sum = 0;
		for (i64 k = 0; k < n; k++) {
			i64 at = first + (reverse ? n - 1 - k : k) * inner;
			S before = sum;
			sum += x[at];
			out[at] = (T)(exclusive ? before : sum);
		}
	}
}
extern "C" __global__ void cumulate_columns(void *out, const void *x, i64 outer, i64 n, i64 inner,
	int reverse, int exclusive, int type) {
	switch (type) {
#define CASE(t, T) \
	case t: cumulate<T, u64>((T *)out, (const T *)x, outer, n, inner, reverse, exclusive); break;
		INTEGERS(CASE)
#undef CASE
	case F64:
		cumulate<double, double>((double *)out, (const double *)x, outer, n, inner, reverse,
			exclusive);
		break;
	default:
		cumulate<float, double>((float *)out, (const float *)x, outer, n, inner, reverse,
			exclusive);
	}
}

// Elements and their places as numbers: the larger element is larger, of equals the first, and
// NaN is the largest: beyond infinity, and below what no element has. With least the smaller
// element is larger, and NaN the least.
__device__ __forceinline__ i64 ranked(float v, i64 i, int least = 0) {
	int b = __float_as_int(v + 0.f);
	int order = is_nan(v) ? 0x7f800001 : b ^ (b >> 31 & 0x7fffffff);
	if (least) order = -order;
	return (i64)((u64)(u32)order << 32 | (u32)~i);
}
struct Larger {
	__device__ static i64 zero() { return (i64)0x8000000000000000ull; }
	__device__ static i64 two(i64 a, i64 b) { return a > b ? a : b; }
};
// The k largest of each row, the largest first, or the smallest: every pass finds the next.
template <class T> __device__ void top_k_of(T *values, int *indices, const T *x, i64 rows, i64 n,
	i64 count, int least, int wide) {
	Team t = team(wide);
	for (i64 r = t.first; r < rows; r += t.step) {
		const T *row = x + r * n;
		i64 last = 0x7fffffffffffffffll;
		for (i64 k = 0; k < count; k++) {
			i64 best = Larger::zero();
			for (i64 i = t.lane; i < n; i += t.size) {
				i64 v = ranked(row[i], i, least);
				if (v < last) best = Larger::two(v, best);
			}
			last = fold<Larger>(t, best);
			int at = (int)~(u32)last;
			if (t.lane == 0) values[r * count + k] = row[at], indices[r * count + k] = at;
		}
	}
}
extern "C" __global__ void __launch_bounds__(256) top_k(float *values, int *indices, const float *x,
	i64 rows, i64 n, i64 count, int least, int wide) {
	top_k_of(values, indices, x, rows, n, count, least, wide);
}
extern "C" __global__ void __launch_bounds__(256) top_k_16(Half *values, int *indices,
	const Half *x, i64 rows, i64 n, i64 count, int least, int wide) {
	top_k_of(values, indices, x, rows, n, count, least, wide);
}
