// Products by tiles, of matrices whose elements functions of their places give: rows of experts
// that only the device knows, and images that a filter moves over. A tile of TILE×TILE results
// is computed by a block of 256 threads, each of which has 4×4 of them. The inner dimension is
// taken DEEP elements at a time, in order.
#define TILE 64
#define DEEP 16

struct Panels {
	float left[DEEP][TILE + 4], right[DEEP][TILE + 4];
};

// Swift says which index of an operand goes with the thread: the inner one, or the outer.
template <bool SwiftA, bool SwiftB, class A, class B, class C>
__device__ void tile_by(Panels &p, i64 m0, i64 n0, i64 m, i64 n, i64 k0, i64 k1, A a, B b, C c) {
	int me = threadIdx.x, row = me / 16 * 4, column = me % 16 * 4;
	float sum[4][4] = {};
	for (i64 k = k0; k < k1; k += DEEP) {
		for (int i = 0; i < TILE * DEEP; i += 256) {
			int e = i + me, ka = SwiftA ? e % DEEP : e / TILE, ra = SwiftA ? e / DEEP : e % TILE;
			int kb = SwiftB ? e % DEEP : e / TILE, rb = SwiftB ? e / DEEP : e % TILE;
			p.left[ka][ra] = m0 + ra < m && k + ka < k1 ? a(m0 + ra, k + ka) : 0.f;
			p.right[kb][rb] = n0 + rb < n && k + kb < k1 ? b(k + kb, n0 + rb) : 0.f;
		}
		__syncthreads();
		for (int d = 0; d < DEEP; d++) {
			float x[4], y[4];
			for (int i = 0; i < 4; i++) x[i] = p.left[d][row + i], y[i] = p.right[d][column + i];
			for (int i = 0; i < 4; i++)
				for (int j = 0; j < 4; j++) sum[i][j] = fmaf(x[i], y[j], sum[i][j]);
		}
		__syncthreads();
	}
	for (int i = 0; i < 4; i++)
		for (int j = 0; j < 4; j++)
			if (m0 + row + i < m && n0 + column + j < n)
				c(m0 + row + i, n0 + column + j, sum[i][j]);
}
template <bool SwiftA, bool SwiftB, class A, class B, class C>
__device__ void tile(i64 m0, i64 n0, i64 m, i64 n, i64 k0, i64 k1, A a, B b, C c) {
	__shared__ Panels p;
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
extern "C" __global__ void __launch_bounds__(256) grouped_product(float *out, const float *x,
	const float *w, const int *offsets, i64 experts, i64 rows, i64 k, i64 n, i64 most, int trans) {
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
		const float *weights = w + e * k * n;
		i64 lo = r.lo;
		auto a = [=](i64 i, i64 d) { return x[(lo + i) * k + d]; };
		auto c = [=](i64 i, i64 j, float v) { out[(lo + i) * n + j] = v; };
		i64 m0 = tiles * TILE, n0 = block % across * TILE;
		if (trans)
			tile<true, true>(m0, n0, r.hi - lo, n, 0, k, a,
				[=](i64 d, i64 j) { return weights[j * k + d]; }, c);
		else
			tile<true, false>(m0, n0, r.hi - lo, n, 0, k, a,
				[=](i64 d, i64 j) { return weights[d * n + j]; }, c);
	}
}

// aᵀ·b over the rows of each expert.
extern "C" __global__ void __launch_bounds__(256) grouped_outer(float *out, const float *a,
	const float *b, const int *offsets, i64 experts, i64 rows, i64 k, i64 n) {
	i64 down = (k + TILE - 1) / TILE, across = (n + TILE - 1) / TILE;
	for (i64 block = blockIdx.x; block < experts * down * across; block += gridDim.x) {
		i64 e = block / across / down;
		Rows r = rows_of(offsets, e, rows);
		tile<false, false>(block / across % down * TILE, block % across * TILE, k, n, r.lo, r.hi,
			[=](i64 i, i64 d) { return a[d * k + i]; }, [=](i64 d, i64 j) { return b[d * n + j]; },
			[=](i64 i, i64 j, float v) { out[(e * k + i) * n + j] = v; });
	}
}
