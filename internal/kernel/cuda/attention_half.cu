// Attention of bfloat16, by the same tiles, products by tensor cores. A thread has its logits and
// its sums of results in registers; weights, which are rounded to bfloat16 for the products that
// they are operands of, are in shared memory. The sum that a row is divided by is of weights that
// are not rounded. Results have two tiles of columns at a time; for more, weights are made again.
// Two blocks have room on a multiprocessor.
#define CHUNK (2 * TILE)
typedef u32 HalfWeights[TILE / 2][HALF_WIDTH]; // pairs of columns, of TILE rows

// Adds to sums of a tile's rows what the weights of so many columns make of vectors, of whose n
// elements a thread has those from n0 on.
__device__ __forceinline__ void add_vectors(Panels<Half> &p, const HalfWeights &w,
	const Columns<Half> &vectors, int depth, int n0, int n, float (&sum)[2][4][4]) {
#pragma unroll
	for (int part = 0; part < 2; part++)
		if (n0 + part * TILE < n) {
			Share<false, Panels<Half>, Columns<Half>> right(vectors, n0 + part * TILE, n);
			right.load(0, depth);
			for (int first = 0; 2 * first < depth; first += DEEP) {
				right.store(p.right);
				__syncthreads();
				right.load(2 * (first + DEEP), depth);
				multiply(w, first, p.right, sum[part]);
				__syncthreads();
			}
		}
}

// Has weights be those of a thread's numbers.
__device__ __forceinline__ void put_weights(HalfWeights &w, const float (&x)[4][4]) {
	each_spot([&](int j, int i, int row, int column) {
		int pair = column / 2;
		u32 word = pair_of(to_bf16(x[j][i]), to_bf16(x[j][i | 1]));
		if (i % 2 == 0) w[pair][Panels<Half>::place(pair, row)] = word;
	});
}

// Gives a tile's sums: rows below m and columns below n, next elements apart.
template <class F> __device__ __forceinline__ void give(Half *to, i64 next, int m, int n0, int n,
	const float (&sum)[2][4][4], F f) {
#pragma unroll
	for (int part = 0; part < 2; part++)
		each_spot([&](int j, int i, int row, int column) {
			column += n0 + part * TILE;
			if (row < m && column < n) to[row * next + column] = f(i / 2, sum[part][j][i]);
		});
}

// A number of each of a thread's two rows, from all threads that have some of the row.
template <class O> __device__ __forceinline__ void fold_rows(float (&x)[2],
	float (&halves)[2][TILE]) {
	for (int i = 0; i < 2; i++) {
		x[i] = O::two(x[i], __shfl_xor_sync(0xffffffffu, x[i], 1));
		x[i] = O::two(x[i], __shfl_xor_sync(0xffffffffu, x[i], 2));
		if (threadIdx.x % 4 == 0) halves[threadIdx.x / 128][Spot::row(2 * i)] = x[i];
	}
	__syncthreads();
	for (int i = 0; i < 2; i++)
		x[i] = O::two(halves[0][Spot::row(2 * i)], halves[1][Spot::row(2 * i)]);
}

// Where a tile of queries and keys is.
struct Place {
	i64 b, h, q0, k0;
	int rows, columns;
};

// Of a thread's 16 spots, which f of a query and a key is true of, by bits 4·j+i. Turned, rows are
// keys and columns are queries.
template <bool Turned, class F> __device__ __forceinline__ u32 spots_of(F f) {
	u32 bits = 0;
#pragma unroll 1
	for (int e = 0; e < 16; e++) {
		int row = Spot::row(e % 4), column = Spot::column(e / 4, e % 4);
		if (f(Turned ? column : row, Turned ? row : column)) bits |= 1u << e;
	}
	return bits;
}
// What few tiles ask for is not in the text of all: a thread's sums would give up their registers.
template <bool Turned> __device__ __noinline__ u32 seen_apiece(const Attention &a, Place t) {
	return spots_of<Turned>([=, &a](int q, int k) {
		return q < t.rows && k < t.columns && sees(a, t.b, t.q0 + q, t.k0 + k);
	});
}
template <bool Turned> __device__ __noinline__ u32 kept_of(const Attention &a, u64 key, Place t) {
	return spots_of<Turned>([=, &a](int q, int k) {
		return noise_of(a, key, t.b, t.h, t.q0 + q, t.k0 + k) != 0;
	});
}
template <bool Turned> __device__ __forceinline__ u32 seen_of(const Attention &a, const Place &t) {
	bool below = !a.causal || (!a.window && t.k0 + TILE - 1 <= place_of(a, t.b, t.q0));
	if (t.rows == TILE && t.columns == TILE && below && !a.padding && !a.documents) return 0xffff;
	return seen_apiece<Turned>(a, t);
}

// Drops some of a tile's weights, or of their gradients, and scales the others.
template <bool Turned> __device__ __forceinline__ void drop(const Attention &a, u64 key,
	const Place &t, float (&x)[4][4]) {
	if (!a.seed) return;
	u32 kept = kept_of<Turned>(a, key, t);
	each_spot([&](int j, int i, int, int) { x[j][i] *= kept >> (4 * j + i) & 1 ? a.kept : 0.f; });
}

// Has sums of products be logits.
__device__ __forceinline__ void scale_logits(const Attention &a, float (&x)[4][4]) {
	each_spot([&](int j, int i, int, int) { x[j][i] *= a.scale; });
	if (a.cap > 0) each_spot([&](int j, int i, int, int) { x[j][i] = capped(a, x[j][i]); });
}

// What a row has come to: its largest logit and the sum of its weights, and how much smaller those
// of before are by the last tile's.
struct Running {
	float most[2], sum[2], grown[2];
};
struct Softened {
	HalfWeights weights;
	float most[2][TILE], sum[2][TILE];
};
__device__ __forceinline__ void soften(const Attention &a, u64 key, const Place &t,
	float (&x)[4][4], Running &r, Softened &s) {
	float top[2] = {r.most[0], r.most[1]}, sum[2] = {};
	u32 seen = seen_of<false>(a, t);
	scale_logits(a, x);
	each_spot([&](int j, int i, int, int) {
		if (!(seen >> (4 * j + i) & 1)) x[j][i] = -infinity();
		top[i / 2] = max_of(x[j][i], top[i / 2]);
	});
	fold_rows<Max>(top, s.most);
	each_spot([&](int j, int i, int, int) {
		x[j][i] = top[i / 2] == -infinity() ? 0.f : expf(x[j][i] - top[i / 2]);
		sum[i / 2] += x[j][i];
	});
	drop<false>(a, key, t, x);
	put_weights(s.weights, x);
	fold_rows<Sum<float>>(sum, s.sum);
	for (int i = 0; i < 2; i++) {
		r.grown[i] = r.most[i] == top[i] ? 1.f : expf(r.most[i] - top[i]);
		r.sum[i] = r.sum[i] * r.grown[i] + sum[i];
		r.most[i] = top[i];
	}
}

extern "C" __global__ void __launch_bounds__(256, 2) attention_16(PARAM Attention a, Half *out,
	float *sums, const Half *q, const Half *k, const Half *v) {
	__shared__ Panels<Half> p;
	__shared__ Softened soft;
	i64 tiles = (a.queries + TILE - 1) / TILE, per = a.heads / a.groups;
	u64 key = a.seed ? stream_key(a.seed, a.salt) : 0;
	for (i64 block = blockIdx.x; block < a.batch * a.heads * tiles; block += gridDim.x) {
		i64 b = block / tiles / a.heads, h = block / tiles % a.heads, q0 = block % tiles * TILE;
		int rows = least(TILE, a.queries - q0), n0 = 0;
		do { // also where values have no elements
			float y[2][4][4] = {};
			Running r{{-infinity(), -infinity()}};
			for (i64 k0 = 0; k0 < a.keys; k0 += TILE) {
				int columns = least(TILE, a.keys - k0);
				if (hides(a, b, q0, rows, k0, columns)) continue;
				float x[4][4] = {};
				add_tile<true, true>(p, 0, 0, rows, columns, 0, (int)a.size,
					Lines<Half>{q + along(a.q, b, h, q0), (int)a.q.next},
					Lines<Half>{k + along(a.k, b, h / per, k0), (int)a.k.next}, x);
				soften(a, key, Place{b, h, q0, k0, rows, columns}, x, r, soft);
				each_spot([&](int j, int i, int, int) {
					y[0][j][i] *= r.grown[i / 2], y[1][j][i] *= r.grown[i / 2];
				});
				add_vectors(p, soft.weights,
					Columns<Half>{v + along(a.v, b, h / per, k0), (int)a.v.next}, columns, n0,
					(int)a.value, y);
			}
			give(out + along(a.y, b, h, q0), a.y.next, rows, n0, (int)a.value, y,
				[&](int i, float x) { return r.sum[i] != 0 ? x / r.sum[i] : 0.f; });
			for (int i = 0; i < 2; i++) {
				int row = Spot::row(2 * i);
				if (n0 == 0 && Spot::column(0, 0) == 0 && row < rows)
					sums[along(a.s, b, h, q0 + row)] = r.most[i] + logf(r.sum[i]);
			}
		} while ((n0 += CHUNK) < a.value);
	}
}

// What gradients by a tile read at once: its weights as an operand, and of its queries the
// logarithms of sums and what gradients of weights have in common.
struct Weighed {
	HalfWeights weights;
	float sum[TILE], delta[TILE];
};

// The weights of a tile, less what is dropped, or the gradients of its products. Turned, its rows
// are keys and its columns queries.
template <bool Turned, bool Gradient> __device__ __forceinline__ void weigh(const Attention &a,
	const Backward<Half> &x, u64 key, Panels<Half> &p, Weighed &w, const Place &t) {
	i64 group = t.h / (a.heads / a.groups);
	Lines<Half> q{x.q + along(a.q, t.b, t.h, t.q0), (int)a.q.next};
	Lines<Half> k{x.k + along(a.k, t.b, group, t.k0), (int)a.k.next};
	float s[4][4] = {}, g[4][4] = {};
	int m = Turned ? t.columns : t.rows, n = Turned ? t.rows : t.columns, me = threadIdx.x;
	if (me < TILE) {
		i64 row = along(a.s, t.b, t.h, t.q0 + me);
		w.sum[me] = me < t.rows ? x.sums[row] : -infinity();
		w.delta[me] = me < t.rows ? x.delta[row] : 0;
	}
	__syncthreads();
	add_tile<true, true>(p, 0, 0, m, n, 0, (int)a.size, Turned ? k : q, Turned ? q : k, s);
	if (Gradient) {
		Lines<Half> d{x.d + along(a.y, t.b, t.h, t.q0), (int)a.y.next};
		Lines<Half> v{x.v + along(a.v, t.b, group, t.k0), (int)a.v.next};
		add_tile<true, true>(p, 0, 0, m, n, 0, (int)a.value, Turned ? v : d, Turned ? d : v, g);
		drop<Turned>(a, key, t, g);
	}
	u32 seen = seen_of<Turned>(a, t);
	scale_logits(a, s);
	each_spot([&](int j, int i, int row, int column) {
		int query = Turned ? column : row;
		bool is = seen >> (4 * j + i) & 1 && w.sum[query] != -infinity();
		float weight = is ? expf(s[j][i] - w.sum[query]) : 0.f, slope = 1;
		if (a.cap > 0) slope = 1.f - s[j][i] / a.cap * (s[j][i] / a.cap);
		s[j][i] = Gradient ? weight * (g[j][i] - w.delta[query]) * slope : weight;
	});
	if (!Gradient) drop<Turned>(a, key, t, s);
	put_weights(w.weights, s);
	__syncthreads();
}

// The gradients of keys, or of values.
template <bool Values> __device__ __forceinline__ void attention_keys_half(const Attention &a,
	const Backward<Half> &x, Half *out) {
	__shared__ Panels<Half> p;
	__shared__ Weighed w;
	i64 tiles = (a.keys + TILE - 1) / TILE, per = a.heads / a.groups;
	const Strides &to = Values ? a.v : a.k, &from = Values ? a.y : a.q;
	const Half *vectors = Values ? x.d : x.q;
	int n = (int)(Values ? a.value : a.size);
	u64 key = a.seed ? stream_key(a.seed, a.salt) : 0;
	for (i64 block = blockIdx.x; block < a.batch * a.groups * tiles; block += gridDim.x) {
		i64 b = block / tiles / a.groups, group = block / tiles % a.groups;
		i64 k0 = block % tiles * TILE;
		int columns = least(TILE, a.keys - k0);
		for (int n0 = 0; n0 < n; n0 += CHUNK) {
			float sum[2][4][4] = {};
			for (i64 h = group * per; h < (group + 1) * per; h++)
				for (i64 q0 = 0; q0 < a.queries; q0 += TILE) {
					int rows = least(TILE, a.queries - q0);
					if (hides(a, b, q0, rows, k0, columns)) continue;
					weigh<true, !Values>(a, x, key, p, w, Place{b, h, q0, k0, rows, columns});
					add_vectors(p, w.weights, Columns<Half>{vectors + along(from, b, h, q0), (int)from.next},
						rows, n0, n, sum);
				}
			give(out + along(to, b, group, k0), to.next, columns, n0, n, sum,
				[&](int, float x) { return Values ? x : a.scale * x; });
		}
	}
}
extern "C" __global__ void __launch_bounds__(256, 2) attention_keys_16(PARAM Attention a,
	PARAM Backward<Half> x, Half *out) {
	attention_keys_half<false>(a, x, out);
}
extern "C" __global__ void __launch_bounds__(256, 2) attention_values_16(PARAM Attention a,
	PARAM Backward<Half> x, Half *out) {
	attention_keys_half<true>(a, x, out);
}

extern "C" __global__ void __launch_bounds__(256, 2) attention_queries_16(PARAM Attention a,
	PARAM Backward<Half> x, Half *out) {
	__shared__ Panels<Half> p;
	__shared__ Weighed w;
	i64 tiles = (a.queries + TILE - 1) / TILE, per = a.heads / a.groups;
	u64 key = a.seed ? stream_key(a.seed, a.salt) : 0;
	for (i64 block = blockIdx.x; block < a.batch * a.heads * tiles; block += gridDim.x) {
		i64 b = block / tiles / a.heads, h = block / tiles % a.heads, q0 = block % tiles * TILE;
		int rows = least(TILE, a.queries - q0);
		for (int n0 = 0; n0 < a.size; n0 += CHUNK) {
			float sum[2][4][4] = {};
			for (i64 k0 = 0; k0 < a.keys; k0 += TILE) {
				int columns = least(TILE, a.keys - k0);
				if (hides(a, b, q0, rows, k0, columns)) continue;
				weigh<false, true>(a, x, key, p, w, Place{b, h, q0, k0, rows, columns});
				add_vectors(p, w.weights, Columns<Half>{x.k + along(a.k, b, h / per, k0), (int)a.k.next},
					columns, n0, (int)a.size, sum);
			}
			give(out + along(a.q, b, h, q0), a.q.next, rows, n0, (int)a.size, sum,
				[&](int, float x) { return a.scale * x; });
		}
	}
}
