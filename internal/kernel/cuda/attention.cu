// Attention by tiles of 64 queries and 64 keys, of which a block has one at a time: the matrix of
// weights is nowhere. Rows are divided by the sums of their weights at the end; the gradients
// compute weights again, those of keys, of values and of queries each in a kernel of its own, so
// that every sum has an order and there are no atomics.
struct Strides {
	i64 batch, head, next;
};
struct Attention {
	i64 batch, queries, keys, heads, groups, size, value;
	Strides q, k, v, y, s; // of y and s: results, and numbers of rows
	i64 causal, place, each, window, sinks; // each: places are of elements of the batch
	i64 from, by_batch, by_head, by_query; // numbers of weights in the random stream
	u64 salt;
	const int *padding, *documents, *places, *seed; // 0 where there are none
	float scale, cap, kept;
	u32 limit;
};
struct Matrix {
	float at[TILE][TILE + 1];
};

__device__ __forceinline__ i64 along(const Strides &s, i64 b, i64 h, i64 i) {
	return b * s.batch + h * s.head + i * s.next;
}
__device__ __forceinline__ i64 place_of(const Attention &a, i64 b, i64 q) {
	return a.place + q + (a.places ? a.places[a.each ? b : 0] : 0);
}
__device__ __forceinline__ bool sees(const Attention &a, i64 b, i64 q, i64 k) {
	i64 p = place_of(a, b, q);
	if (a.causal && (k > p || (a.window && k <= p - a.window && k >= a.sinks))) return false;
	if (a.padding && a.padding[b * a.keys + k] == 0) return false;
	return !a.documents || a.documents[b * a.keys + k] == a.documents[b * a.keys + p];
}
// Does a causal mask or a window hide a tile entirely?
__device__ __forceinline__ bool hides(const Attention &a, i64 b, i64 q0, int rows, i64 k0,
	int columns) {
	if (!a.causal) return false;
	if (k0 > place_of(a, b, q0 + rows - 1)) return true;
	return a.window && k0 + columns - 1 <= place_of(a, b, q0) - a.window && k0 >= a.sinks;
}
__device__ __forceinline__ float noise_of(const Attention &a, u64 key, i64 b, i64 h, i64 q, i64 k) {
	if (!a.seed) return 1;
	u64 at = (u64)(a.from + b * a.by_batch + h * a.by_head + q * a.by_query + k);
	return philox_word(key, at) <= a.limit ? a.kept : 0.f;
}
__device__ __forceinline__ float capped(const Attention &a, float x) {
	return a.cap > 0 ? a.cap * tanhf(x / a.cap) : x;
}
__device__ __forceinline__ int least(int a, i64 b) { return b < a ? (int)b : a; }

__device__ __forceinline__ void clear_rows(float *to, i64 next, int rows, int n) {
	for (int i = threadIdx.x; i < rows * n; i += 256) to[i / n * next + i % n] = 0;
}

// The scaled products of a tile's queries and keys.
__device__ __forceinline__ void logits_of(const Attention &a,
	Panels<float> &p, Matrix &w, const float *q, const float *k, int rows, int columns) {
	tile_by<true, true>(p, 0, 0, rows, columns, 0, (int)a.size, Lines<float>{q, (int)a.q.next},
		Lines<float>{k, (int)a.k.next},
		[&](int i, int j, float v) { w.at[i][j] = capped(a, a.scale * v); });
}

extern "C" __global__ void __launch_bounds__(256) attention(PARAM Attention a, float *out,
	float *sums, const float *q, const float *k, const float *v) {
	__shared__ Panels<float> p;
	__shared__ Matrix w;
	__shared__ float most[TILE], sum[TILE], grown[TILE];
	int me = threadIdx.x, lane = me % 32;
	i64 tiles = (a.queries + TILE - 1) / TILE, per = a.heads / a.groups;
	u64 key = a.seed ? stream_key(a.seed, a.salt) : 0;
	for (i64 block = blockIdx.x; block < a.batch * a.heads * tiles; block += gridDim.x) {
		i64 b = block / tiles / a.heads, h = block / tiles % a.heads, q0 = block % tiles * TILE;
		int rows = least(TILE, a.queries - q0);
		float *y = out + along(a.y, b, h, q0);
		clear_rows(y, a.y.next, rows, (int)a.value);
		if (me < TILE) most[me] = -infinity(), sum[me] = 0;
		__syncthreads();
		for (i64 k0 = 0; k0 < a.keys; k0 += TILE) {
			int columns = least(TILE, a.keys - k0);
			if (hides(a, b, q0, rows, k0, columns)) continue;
			logits_of(a, p, w, q + along(a.q, b, h, q0), k + along(a.k, b, h / per, k0), rows,
				columns);
			__syncthreads();
			for (i64 r = me / 32; r < rows; r += 8) {
				float x[2], top = most[r], s = 0;
				for (int i = 0; i < 2; i++) {
					i64 j = lane + 32 * i;
					bool seen = j < columns && sees(a, b, q0 + r, k0 + j);
					x[i] = seen ? w.at[r][j] : -infinity();
					top = max_of(x[i], top);
				}
				top = fold_warp<Max>(top);
				for (int i = 0; i < 2; i++) {
					i64 j = lane + 32 * i;
					float e = top == -infinity() ? 0.f : expf(x[i] - top);
					s += e;
					if (j < columns) w.at[r][j] = e * noise_of(a, key, b, h, q0 + r, k0 + j);
				}
				s = fold_warp<Sum<float>>(s);
				float g = most[r] == top ? 1.f : expf(most[r] - top);
				__syncwarp();
				if (lane == 0) grown[r] = g, most[r] = top, sum[r] = sum[r] * g + s;
			}
			__syncthreads();
			const float *values = v + along(a.v, b, h / per, k0);
			for (int n0 = 0; n0 < a.value; n0 += TILE)
				tile_by<true, false>(p, 0, n0, rows, (int)a.value, 0, columns,
					Lines<float>{w.at[0], TILE + 1}, Columns<float>{values, (int)a.v.next},
					[&](int i, int j, float x) {
						y[i * a.y.next + j] = y[i * a.y.next + j] * grown[i] + x;
					});
			__syncthreads();
		}
		__syncthreads();
		for (int i = me, n = (int)a.value; i < rows * n; i += 256) {
			i64 r = i / n, at = r * a.y.next + i % n;
			y[at] = sum[r] != 0 ? y[at] / sum[r] : 0.f;
		}
		if (me < rows) sums[along(a.s, b, h, q0 + me)] = most[me] + logf(sum[me]);
		__syncthreads();
	}
}

// What gradients read: queries, keys, values, logarithms of sums, the gradient of results, and
// for each row what the gradients of its weights have in common.
template <class T> struct Backward {
	const T *q, *k, *v;
	const float *sums;
	const T *d;
	const float *delta;
};

// The weights of a tile, less what is dropped, and the gradients of its products.
__device__ void weights_of(const Attention &a, const Backward<float> &x, u64 key,
	Panels<float> &p, Matrix &w, Matrix &g, i64 b, i64 h, i64 q0, int rows, i64 k0, int columns) {
	i64 group = h / (a.heads / a.groups);
	logits_of(a, p, w, x.q + along(a.q, b, h, q0), x.k + along(a.k, b, group, k0), rows, columns);
	const float *d = x.d + along(a.y, b, h, q0), *v = x.v + along(a.v, b, group, k0);
	tile_by<true, true>(p, 0, 0, rows, columns, 0, (int)a.value, Lines<float>{d, (int)a.y.next},
		Lines<float>{v, (int)a.v.next}, [&](int i, int j, float s) { g.at[i][j] = s; });
	__syncthreads();
	for (int i = threadIdx.x; i < TILE * TILE; i += 256) {
		int r = i / TILE, c = i % TILE;
		if (r >= rows || c >= columns) continue;
		i64 at = along(a.s, b, h, q0 + r);
		float logit = w.at[r][c], sum = x.sums[at], weight = 0, slope = 1;
		if (sum != -infinity() && sees(a, b, q0 + r, k0 + c)) weight = expf(logit - sum);
		if (a.cap > 0) slope = 1.f - logit / a.cap * (logit / a.cap);
		float noise = noise_of(a, key, b, h, q0 + r, k0 + c);
		g.at[r][c] = weight * (noise * g.at[r][c] - x.delta[at]) * slope;
		w.at[r][c] = weight * noise;
	}
	__syncthreads();
}

// A tile's weights as an operand: of its rows, or of its columns.
template <bool Across> struct Taken {
	typedef Lines<float> Of;
};
template <> struct Taken<true> {
	typedef Columns<float> Of;
};

// Adds to rows of a result, of so many elements, the products of a tile's columns, or rows, and
// of vectors.
template <bool Across> __device__ __forceinline__ void add_products(Panels<float> &p,
	const Matrix &w, float *to, i64 next, const float *from, int step, float scale, int rows,
	int inner, int n) {
	for (int n0 = 0; n0 < n; n0 += TILE)
		tile_by<!Across, false>(p, 0, n0, rows, n, 0, inner,
			typename Taken<Across>::Of{w.at[0], TILE + 1}, Columns<float>{from, step},
			[=](int i, int j, float s) { to[i * next + j] += scale * s; });
}

// The gradients of keys, or of values: in one kernel both have too many registers.
template <bool Values> __device__ void attention_keys_of(const Attention &a,
	const Backward<float> &x, float *out) {
	__shared__ Panels<float> p;
	__shared__ Matrix w, g;
	i64 tiles = (a.keys + TILE - 1) / TILE, per = a.heads / a.groups;
	i64 next = Values ? a.v.next : a.k.next;
	int n = (int)(Values ? a.value : a.size);
	u64 key = a.seed ? stream_key(a.seed, a.salt) : 0;
	for (i64 block = blockIdx.x; block < a.batch * a.groups * tiles; block += gridDim.x) {
		i64 b = block / tiles / a.groups, group = block / tiles % a.groups;
		i64 k0 = block % tiles * TILE;
		int columns = least(TILE, a.keys - k0);
		i64 at = along(Values ? a.v : a.k, b, group, k0);
		clear_rows(out + at, next, columns, n);
		__syncthreads();
		for (i64 h = group * per; h < (group + 1) * per; h++)
			for (i64 q0 = 0; q0 < a.queries; q0 += TILE) {
				int rows = least(TILE, a.queries - q0);
				if (hides(a, b, q0, rows, k0, columns)) continue;
				weights_of(a, x, key, p, w, g, b, h, q0, rows, k0, columns);
				if (Values)
					add_products<true>(p, w, out + at, next, x.d + along(a.y, b, h, q0),
						(int)a.y.next, 1, columns, rows, n);
				else
					add_products<true>(p, g, out + at, next, x.q + along(a.q, b, h, q0),
						(int)a.q.next, a.scale, columns, rows, n);
				__syncthreads();
			}
	}
}
extern "C" __global__ void __launch_bounds__(256) attention_keys(PARAM Attention a,
	PARAM Backward<float> x, float *out) {
	attention_keys_of<false>(a, x, out);
}
extern "C" __global__ void __launch_bounds__(256) attention_values(PARAM Attention a,
	PARAM Backward<float> x, float *out) {
	attention_keys_of<true>(a, x, out);
}

extern "C" __global__ void __launch_bounds__(256) attention_queries(PARAM Attention a,
	PARAM Backward<float> x, float *out) {
	__shared__ Panels<float> p;
	__shared__ Matrix w, g;
	i64 tiles = (a.queries + TILE - 1) / TILE, per = a.heads / a.groups;
	u64 key = a.seed ? stream_key(a.seed, a.salt) : 0;
	for (i64 block = blockIdx.x; block < a.batch * a.heads * tiles; block += gridDim.x) {
		i64 b = block / tiles / a.heads, h = block / tiles % a.heads, q0 = block % tiles * TILE;
		int rows = least(TILE, a.queries - q0);
		float *to = out + along(a.q, b, h, q0);
		clear_rows(to, a.q.next, rows, (int)a.size);
		__syncthreads();
		for (i64 k0 = 0; k0 < a.keys; k0 += TILE) {
			int columns = least(TILE, a.keys - k0);
			if (hides(a, b, q0, rows, k0, columns)) continue;
			weights_of(a, x, key, p, w, g, b, h, q0, rows, k0, columns);
			add_products<false>(p, g, to, a.q.next, x.k + along(a.k, b, h / per, k0),
				(int)a.k.next, a.scale, rows, columns, (int)a.size);
			__syncthreads();
		}
	}
}

// -infinity where a key is not seen, else 0.
extern "C" __global__ void attention_mask(PARAM Attention a, float *out) {
	EACH(i, a.batch * a.queries * a.keys)
		out[i] = sees(a, i / a.keys / a.queries, i / a.keys % a.queries, i % a.keys) ? 0.f
			: -infinity();
}
