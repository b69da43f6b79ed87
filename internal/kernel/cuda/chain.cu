// Chains are interpreted, four elements of a thread at a time, so that one kernel serves every
// chain. All threads take the same way through it.

__device__ __forceinline__ i64 met(const Spread &s, i64 i, i64 n) {
	if (s.period == 1) return 0;
	if (n <= 0xffffffffll) return (u32)i / (u32)s.hold % (u32)s.period;
	return i / s.hold % s.period;
}

// Elements i to i+3 of an operand, those below n.
__device__ inline void load(float *x, const Spread &s, i64 i, i64 n) {
	const float *from = (const float *)s.at;
	if (s.half) {
		const u16 *half = (const u16 *)s.at;
		for (int k = 0; k < 4; k++)
			x[k] = i + k < n ? from_bf16(half[s.period ? met(s, i + k, n) : i + k]) : 0.f;
		return;
	}
	if (s.period == 0) {
		if (i + 4 <= n && (s.at + 4 * i) % 16 == 0) {
			float4 v = *(const float4 *)(from + i);
			x[0] = v.x, x[1] = v.y, x[2] = v.z, x[3] = v.w;
			return;
		}
		for (int k = 0; k < 4; k++) x[k] = i + k < n ? from[i + k] : 0.f;
		return;
	}
	for (int k = 0; k < 4; k++) x[k] = i + k < n ? from[met(s, i + k, n)] : 0.f;
}

__device__ inline void store(float *to, const float *x, i64 i, i64 n) {
	if (i + 4 <= n && (u64)(to + i) % 16 == 0) {
		*(float4 *)(to + i) = make_float4(x[0], x[1], x[2], x[3]);
		return;
	}
	for (int k = 0; k < 4; k++)
		if (i + k < n) to[i + k] = x[k];
}

__device__ inline void noise(const Instruction &c, const Walk &window, const int *seed, float *x,
	i64 i) {
	u64 key = stream_key(seed, c.salt);
	Words w;
	if (!window.rank) w = philox_from(key, c.from + i);
	for (int k = 0; k < 4 && window.rank; k++) {
		i64 at[1];
		places(window, c.from + i + k, at, 1);
		w.w[k] = philox_word(key, at[0]);
	}
	for (int k = 0; k < 4; k++) x[k] = noisy(c.op, c, x[k], w.w[k]);
}

extern "C" __global__ void __launch_bounds__(256) chain(PARAM Chain c,
	float *out) {
	float kept[8][4];
	for (i64 i = 4 * (blockIdx.x * (i64)blockDim.x + threadIdx.x); i < c.n;
		i += 4 * (i64)gridDim.x * blockDim.x) {
		float last[4] = {0, 0, 0, 0};
		for (int s = 0; s < c.count; s++) {
			const Instruction &ins = c.code[s];
			float x[4], y[4] = {0, 0, 0, 0};
			if (ins.a >= 0) load(x, c.in[ins.a], i, c.n);
			else for (int k = 0; k < 4; k++) x[k] = ~ins.a == s - 1 ? last[k] : kept[~ins.a][k];
			if (ins.op == DROPOUT || ins.op == JITTER) {
				noise(ins, c.window, (const int *)c.in[ins.b].at, x, i);
				for (int k = 0; k < 4; k++) last[k] = x[k];
			} else {
				if (ins.b < 0)
					for (int k = 0; k < 4; k++)
						y[k] = ~ins.b == s - 1 ? last[k] : kept[~ins.b][k];
				else if (ins.b != NONE) load(y, c.in[ins.b], i, c.n);
				for (int k = 0; k < 4; k++) last[k] = apply(ins, x[k], y[k]);
			}
			if (ins.round)
				for (int k = 0; k < 4; k++) last[k] = rounded(last[k]);
			if (ins.keep)
				for (int k = 0; k < 4; k++) kept[s][k] = last[k];
		}
		if (!c.half) store(out, last, i, c.n);
		else
			for (int k = 0; k < 4; k++)
				if (i + k < c.n) ((u16 *)out)[i + k] = to_bf16(last[k]);
	}
}
