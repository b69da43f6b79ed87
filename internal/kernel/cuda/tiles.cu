// Products by tiles, of matrices of whose elements operands know the places: rows of experts that
// only the device knows, and images that a filter moves over. A tile of TILE×TILE results is
// computed by a block of 256 threads, each of which has 16 of them. The inner dimension is taken
// Panels::Deep elements at a time, in order: those of bfloat16 by tensor cores, floats by fmaf.
// While some are multiplied, a thread has the next ones on their way in registers.
#define TILE 64
#define DEEP 16

// An operand says what its outer and its inner index come to, each of which a thread needs for
// several elements, and the element of both. Lines are vectors step apart.
template <class T> struct Lines {
	const T *at;
	int step;
	typedef int Outer;
	__device__ __forceinline__ int outer(int i) const { return i; }
	__device__ __forceinline__ int inner(int d) const { return d; }
	__device__ __forceinline__ T get(int i, int d) const { return at[(i64)i * step + d]; }
};
// Columns are the elements of vectors step apart, across.
template <class T> struct Columns {
	const T *at;
	int step;
	typedef int Outer;
	__device__ __forceinline__ int outer(int i) const { return i; }
	__device__ __forceinline__ const T *inner(int d) const { return at + (i64)d * step; }
	__device__ __forceinline__ T get(int i, const T *row) const { return row[i]; }
};

// Panels are what a block multiplies at once: DEEP words of each of its rows and columns, and where
// word d of a row, or column, is among the others'.
template <class T> struct Panels {
	enum { Each = 1 };
	typedef float Word;
	__align__(16) float left[DEEP][TILE + 4], right[DEEP][TILE + 4];
	__device__ __forceinline__ static int place(int, int row) { return row; }
};
// Of bfloat16 a word is two numbers. What a warp reads or writes at once is in different banks,
// also where its threads go with the inner index: rows change places within eight of them.
#define HALF_WIDTH (TILE + 8)
template <> struct Panels<Half> {
	enum { Each = 2 };
	typedef u32 Word;
	u32 left[DEEP][HALF_WIDTH], right[DEEP][HALF_WIDTH];
	__device__ __forceinline__ static int place(int d, int row) { return row ^ (d / 4 * 2 & 7); }
};

// The word of a row, or column, from inner index d on, of those below end.
template <class F> __device__ __forceinline__ void take(float &w, const F &f,
	const typename F::Outer &o, int d, int end) {
	w = d < end ? (float)f.get(o, f.inner(d)) : 0.f;
}
template <class F> __device__ __forceinline__ void take(u32 &w, const F &f,
	const typename F::Outer &o, int d, int end) {
	u16 a = d < end ? bits_of(f.get(o, f.inner(d))) : 0;
	w = pair_of(a, d + 1 < end ? bits_of(f.get(o, f.inner(d + 1))) : 0);
}
__device__ __forceinline__ void take(u32 &w, const Lines<Half> &f, int i, int d, int end) {
	const Half *p = f.at + (i64)i * f.step + d;
	if (d + 1 < end && ((u64)p & 3) == 0) w = *(const u32 *)p;
	else w = pair_of(d < end ? p->bits : 0, d + 1 < end ? p[1].bits : 0);
}

// What a thread loads of one of panels P: word i of 4 is one of row, or column, row(i). Swift says
// which index goes with the thread: the inner one, or the outer.
template <bool Swift, class P, class F> struct Share {
	F f;
	typename F::Outer outer[Swift ? 4 : 1];
	bool inside[Swift ? 4 : 1];
	typename P::Word word[4];
	__device__ __forceinline__ static int row(int i) {
		return Swift ? threadIdx.x / DEEP + 256 / DEEP * i : threadIdx.x % TILE;
	}
	__device__ __forceinline__ static int depth(int i) {
		return Swift ? threadIdx.x % DEEP : threadIdx.x / TILE + 256 / TILE * i;
	}
	__device__ __forceinline__ Share(F f, int from, int end) : f(f) {
		for (int i = 0; i < (Swift ? 4 : 1); i++) {
			inside[i] = from + row(i) < end;
			outer[i] = f.outer(inside[i] ? from + row(i) : from);
		}
	}
	__device__ __forceinline__ void load(int k, int end) {
		for (int i = 0; i < 4; i++) {
			word[i] = 0;
			if (inside[Swift ? i : 0])
				take(word[i], f, outer[Swift ? i : 0], k + P::Each * depth(i), end);
		}
	}
	template <int Wide>
	__device__ __forceinline__ void store(typename P::Word (&panel)[DEEP][Wide]) const {
		for (int i = 0; i < 4; i++)
			panel[depth(i)][P::place(depth(i), row(0)) + row(i) - row(0)] = word[i];
	}
};

// The products of panels, added to a thread's 16 sums, and where those are in the tile.
__device__ __forceinline__ void multiply(const Panels<float> &p, float (&sum)[4][4]) {
	int row = threadIdx.x / 16 * 4, column = threadIdx.x % 16 * 4;
	for (int d = 0; d < DEEP; d++) {
		float4 x = *(const float4 *)&p.left[d][row], y = *(const float4 *)&p.right[d][column];
		float a[4] = {x.x, x.y, x.z, x.w}, b[4] = {y.x, y.y, y.z, y.w};
		for (int i = 0; i < 4; i++)
			for (int j = 0; j < 4; j++) sum[i][j] = fmaf(a[i], b[j], sum[i][j]);
	}
}
template <class C> __device__ __forceinline__ void each_sum(const Panels<float> &,
	const float (&sum)[4][4], C c) {
	int row = threadIdx.x / 16 * 4, column = threadIdx.x % 16 * 4;
	for (int i = 0; i < 4; i++)
		for (int j = 0; j < 4; j++) c(row + i, column + j, sum[i][j]);
}
// Of the 8 warps each has 16 rows and 32 columns: sum [j][i] of a thread is that of row(i) and
// column(j, i). Loops over sums are unrolled, since arrays are in registers only then.
struct Spot {
	__device__ __forceinline__ static int row(int i) {
		return threadIdx.x / 32 % 4 * 16 + threadIdx.x % 32 / 4 + i / 2 * 8;
	}
	__device__ __forceinline__ static int column(int j, int i) {
		return threadIdx.x / 128 * 32 + threadIdx.x % 4 * 2 + 8 * j + i % 2;
	}
};
template <class F> __device__ __forceinline__ void each_spot(F f) {
#pragma unroll
	for (int j = 0; j < 4; j++)
#pragma unroll
		for (int i = 0; i < 4; i++) f(j, i, Spot::row(i), Spot::column(j, i));
}
// The left words are those from first on.
__device__ __forceinline__ void multiply(const u32 (*left)[HALF_WIDTH], int first,
	const u32 (*right)[HALF_WIDTH], float (&sum)[4][4]) {
	int t = threadIdx.x % 4, g = threadIdx.x % 32 / 4;
	int row = threadIdx.x / 32 % 4 * 16, column = threadIdx.x / 128 * 32;
	auto at = [=](const u32 (*panel)[HALF_WIDTH], int d, int i) {
		return panel[d + t][Panels<Half>::place(d, g) + i];
	};
	for (int d = 0; d < DEEP; d += 8) {
		u32 a[4] = {at(left, first + d, row), at(left, first + d, row + 8),
			at(left, first + d + 4, row), at(left, first + d + 4, row + 8)};
		for (int j = 0; j < 4; j++) {
			u32 b[2] = {at(right, d, column + 8 * j), at(right, d + 4, column + 8 * j)};
			multiply_by_warp(sum[j], a, b);
		}
	}
}
__device__ __forceinline__ void multiply(const Panels<Half> &p, float (&sum)[4][4]) {
	multiply(p.left, 0, p.right, sum);
}
template <class C> __device__ __forceinline__ void each_sum(const Panels<Half> &,
	const float (&sum)[4][4], C c) {
	each_spot([&](int j, int i, int row, int column) { c(row, column, sum[j][i]); });
}

// A thread's sums of a tile whose first row and column are m0 and n0, of those below m and n.
template <bool SwiftA, bool SwiftB, class T, class A, class B>
__device__ __forceinline__ void add_tile(Panels<T> &p, int m0, int n0, int m, int n, int k0, int k1,
	A a, B b, float (&sum)[4][4]) {
	const int deep = Panels<T>::Each * DEEP;
	Share<SwiftA, Panels<T>, A> left(a, m0, m);
	Share<SwiftB, Panels<T>, B> right(b, n0, n);
	left.load(k0, k1), right.load(k0, k1);
	for (int k = k0; k < k1; k += deep) {
		left.store(p.left), right.store(p.right);
		__syncthreads();
		left.load(k + deep, k1), right.load(k + deep, k1);
		multiply(p, sum);
		__syncthreads();
	}
}
template <bool SwiftA, bool SwiftB, class T, class A, class B, class C>
__device__ void tile_by(Panels<T> &p, int m0, int n0, int m, int n, int k0, int k1, A a, B b, C c) {
	float sum[4][4] = {};
	add_tile<SwiftA, SwiftB>(p, m0, n0, m, n, k0, k1, a, b, sum);
	each_sum(p, sum, [=](int i, int j, float v) {
		if (m0 + i < m && n0 + j < n) c(m0 + i, n0 + j, v);
	});
}
template <bool SwiftA, bool SwiftB, class T, class A, class B, class C>
__device__ void tile(int m0, int n0, int m, int n, int k0, int k1, A a, B b, C c) {
	__shared__ Panels<T> p;
	tile_by<SwiftA, SwiftB>(p, m0, n0, m, n, k0, k1, a, b, c);
}

// The rows of an expert, as the offsets have them.
struct Rows {
	i64 lo, hi;
};
__device__ __forceinline__ Rows rows_of(const int *offsets, i64 e, i64 rows) {
	i64 lo = offsets[e], hi = offsets[e + 1];
	if (lo < 0) lo = 0;
	return Rows{lo, hi > rows ? rows : hi};
}

// Rows of each expert times its weights, which are k×n, or n×k. Blocks past the last tile, of
// which only the device knows the number, have nothing to do.
template <class T> __device__ void multiply_groups(T *out, const T *x, const T *w,
	const int *offsets, i64 experts, i64 rows, i64 k, i64 n, i64 most, int trans) {
	i64 across = (n + TILE - 1) / TILE;
	for (i64 block = blockIdx.x; block < most * across; block += gridDim.x) {
		i64 tiles = block / across, e = 0;
		Rows r{0, 0};
		for (; e < experts; e++) {
			r = rows_of(offsets, e, rows);
			i64 have = r.hi > r.lo ? (r.hi - r.lo + TILE - 1) / TILE : 0;
			if (tiles < have) break;
			tiles -= have;
		}
		if (e == experts) continue;
		const T *weights = w + e * k * n, *from = x + r.lo * k;
		T *to = out + r.lo * n;
		auto c = [=](int i, int j, float v) { to[i * n + j] = v; };
		int m0 = (int)tiles * TILE, n0 = (int)(block % across) * TILE, m = (int)(r.hi - r.lo);
		Lines<T> a{from, (int)k};
		if (trans)
			tile<true, true, T>(m0, n0, m, (int)n, 0, (int)k, a, Lines<T>{weights, (int)k}, c);
		else
			tile<true, false, T>(m0, n0, m, (int)n, 0, (int)k, a, Columns<T>{weights, (int)n}, c);
	}
}
extern "C" __global__ void __launch_bounds__(256) grouped_product(float *out, const float *x,
	const float *w, const int *offsets, i64 experts, i64 rows, i64 k, i64 n, i64 most, int trans) {
	multiply_groups(out, x, w, offsets, experts, rows, k, n, most, trans);
}
extern "C" __global__ void __launch_bounds__(256) grouped_product_16(Half *out, const Half *x,
	const Half *w, const int *offsets, i64 experts, i64 rows, i64 k, i64 n, i64 most, int trans) {
	multiply_groups(out, x, w, offsets, experts, rows, k, n, most, trans);
}

// aᵀ·b over the rows of each expert.
template <class T> __device__ void outer_groups(T *out, const T *a, const T *b,
	const int *offsets, i64 experts, i64 rows, i64 k, i64 n) {
	i64 down = (k + TILE - 1) / TILE, across = (n + TILE - 1) / TILE;
	for (i64 block = blockIdx.x; block < experts * down * across; block += gridDim.x) {
		i64 e = block / across / down;
		Rows r = rows_of(offsets, e, rows);
		T *to = out + e * k * n;
		tile<false, false, T>((int)(block / across % down) * TILE, (int)(block % across) * TILE,
			(int)k, (int)n, 0, (int)(r.hi - r.lo), Columns<T>{a + r.lo * k, (int)k},
			Columns<T>{b + r.lo * n, (int)n}, [=](int i, int j, float v) { to[i * n + j] = v; });
	}
}
extern "C" __global__ void __launch_bounds__(256) grouped_outer(float *out, const float *a,
	const float *b, const int *offsets, i64 experts, i64 rows, i64 k, i64 n) {
	outer_groups(out, a, b, offsets, experts, rows, k, n);
}
extern "C" __global__ void __launch_bounds__(256) grouped_outer_16(Half *out, const Half *a,
	const Half *b, const int *offsets, i64 experts, i64 rows, i64 k, i64 n) {
	outer_groups(out, a, b, offsets, experts, rows, k, n);
}
