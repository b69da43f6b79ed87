// Mixtures of experts: who goes where, and rows between tokens and experts.

// The walk is over tokens, with their places among all.
extern "C" __global__ void top_two(PARAM Walk w, int *first, int *second, const float *gates,
	const int *seed, u64 salt, i64 experts, float threshold) {
	u64 key = stream_key(seed, salt);
	EACH(i, w.n) {
		i64 at[1];
		places(w, i, at, 1);
		const float *g = gates + i * experts;
		int a = g[1] > g[0], b = !a;
		for (int e = 2; e < experts; e++) {
			if (g[e] > g[a]) b = a, a = e;
			else if (g[e] > g[b]) b = e;
		}
		float p = g[b] / (g[a] + g[b] + 1e-9f);
		first[i] = a;
		p /= threshold > 1e-9f ? threshold : 1e-9f;
		second[i] = unit(philox_word(key, at[0])) < p ? b : -1;
	}
}

// The number of choices of an expert among those of a, and of b if there are any, n each, by a
// block.
__device__ inline int choices_of(const int *a, const int *b, i64 n, int expert) {
	Team t = team(1);
	int s = 0;
	for (i64 i = t.lane; i < n; i += t.size) s += (a[i] == expert) + (b && b[i] == expert);
	return fold<Sum<int>>(t, s);
}

// What choices an expert has: of first choices, then of second ones if there are any, tokens in
// order. Every thread calls f with a token, the choice and its number among the expert's, if it is
// one.
template <class F> __device__ void each_choice(const int *a, const int *b, i64 n, int expert,
	F f) {
	__shared__ int warps[8];
	int me = threadIdx.x, have = 0;
	for (int choice = 0; choice < 1 + (b != 0); choice++)
		for (i64 start = 0; start < n; start += 256) {
			i64 i = start + me;
			bool mine = i < n && (choice ? b : a)[i] == expert;
			u32 votes = __ballot_sync(0xffffffffu, mine);
			if (me % 32 == 0) warps[me / 32] = __popc(votes);
			__syncthreads();
			int at = have + __popc(votes & ((1u << me % 32) - 1));
			for (int w = 0; w < 8; w++) {
				if (w < me / 32) at += warps[w];
				have += warps[w];
			}
			if (mine) f(i, choice, at);
			__syncthreads();
		}
}

extern "C" __global__ void __launch_bounds__(256) route_counts(int *counts, const int *a,
	const int *b, i64 tokens, i64 experts) {
	for (i64 e = blockIdx.x; e < experts; e += gridDim.x) {
		int n = choices_of(a, b, tokens, (int)e);
		if (threadIdx.x == 0) counts[e] = n;
	}
}
// Choices are two of each token, first ones and second ones, or those of a, so many of each. rows
// and inv are −1 before.
extern "C" __global__ void __launch_bounds__(256) route(int *rows, int *inv, int *offsets,
	const int *counts, const int *a, const int *b, i64 n, i64 each, i64 experts) {
	for (i64 e = blockIdx.x; e < experts; e += gridDim.x) {
		int first = 0;
		for (i64 k = 0; k < e; k++) first += counts[k];
		if (threadIdx.x == 0) offsets[e] = first;
		if (threadIdx.x == 0 && e == experts - 1) offsets[experts] = first + counts[e];
		each_choice(a, b, n, (int)e, [=](i64 i, int choice, int at) {
			rows[first + at] = (int)(b ? i : i / each);
			inv[b ? 2 * i + choice : i] = first + at;
		});
	}
}
// Of packed rows and of choices, n each: the part of a choice, of parts that have the rows of so
// many experts each, and the rows of one part.
extern "C" __global__ void route_part(int *ranks, int *own, const int *rows, const int *inv,
	const int *offsets, i64 n, i64 parts, i64 part, i64 each) {
	EACH(i, n) {
		int r = inv[i], of = r < 0 ? -1 : 0;
		while (r >= 0 && of < parts - 1 && r >= offsets[(of + 1) * each]) of++;
		ranks[i] = of;
		own[i] = i >= offsets[part * each] && i < offsets[(part + 1) * each] ? rows[i] : -1;
	}
}
// The slots are −1 before.
extern "C" __global__ void __launch_bounds__(256) positions(int *first, int *second, const int *a,
	const int *b, i64 groups, i64 tokens, i64 experts, i64 capacity) {
	for (i64 block = blockIdx.x; block < groups * experts; block += gridDim.x) {
		i64 at = block / experts * tokens, e = block % experts;
		each_choice(a + at, b + at, tokens, (int)e, [=](i64 i, int choice, int place) {
			if (place < capacity) (choice ? second : first)[at + i] = (int)(e * capacity) + place;
		});
	}
}
// What a token has in a slot, of those from first on: 1, or its gates.
extern "C" __global__ void slots(float *out, const int *a, const int *b, const float *ga,
	const float *gb, i64 tokens, i64 count, i64 first) {
	EACH(i, tokens * count) {
		i64 t = i / count, slot = i % count + first;
		float v = 0;
		if (a[t] == slot) v = ga ? v + ga[t] : 1.f;
		if (b[t] == slot) v = gb ? v + gb[t] : 1.f;
		out[i] = v;
	}
}

// A token's packed rows, added up, by its gates if there are any.
extern "C" __global__ void sum_choices(float *out, const float *y, const float *gates,
	const int *inv, i64 tokens, i64 each, i64 n) {
	EACH(i, tokens * n) {
		float s = 0;
		for (i64 k = i / n * each; k < (i / n + 1) * each; k++) {
			i64 r = inv[k];
			if (r < 0 || r >= each * tokens) continue;
			s = gates ? fmaf(gates[k], y[r * n + i % n], s) : s + y[r * n + i % n];
		}
		out[i] = s;
	}
}
extern "C" __global__ void spread_choices(float *out, const float *x, const float *gates,
	const int *rows, const int *inv, i64 tokens, i64 each, i64 n) {
	EACH(i, each * tokens * n) {
		i64 r = i / n, t = rows[r];
		if (t < 0 || t >= tokens) {
			out[i] = 0;
			continue;
		}
		i64 k = t * each;
		while (k < (t + 1) * each - 1 && inv[k] != r) k++;
		out[i] = x[t * n + i % n] * gates[k];
	}
}
extern "C" __global__ void __launch_bounds__(256) dot_choices(float *out, const float *x,
	const float *y, const int *inv, i64 tokens, i64 each, i64 n, int wide) {
	Team t = team(wide);
	for (i64 i = t.first; i < each * tokens; i += t.step) {
		i64 r = inv[i];
		float s = 0;
		if (r >= 0 && r < each * tokens)
			for (i64 k = t.lane; k < n; k += t.size) s = fmaf(x[i / each * n + k], y[r * n + k], s);
		s = sum_of(t, s);
		if (t.lane == 0) out[i] = s;
	}
}
