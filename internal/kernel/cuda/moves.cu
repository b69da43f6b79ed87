// Operations that move elements, or look at each on its own, of values that broadcast or lie
// apart.

extern "C" __global__ void copy_walk(PARAM Walk w, void *to, const void *from, int bytes) {
	EACH(i, w.n) {
		i64 at[2];
		places(w, i, at, 2);
		move(to, at[1], from, at[0], bytes);
	}
}

extern "C" __global__ void widen(float *to, const u16 *from, i64 n) {
	EACH(i, n) to[i] = from_bf16(from[i]);
}

extern "C" __global__ void narrow(u16 *to, const float *from, i64 n) {
	EACH(i, n) to[i] = to_bf16(from[i]);
}

extern "C" __global__ void wipe_bytes(u8 *to, i64 n) {
	EACH(i, n) to[i] = 0;
}

extern "C" __global__ void binary_walk(PARAM Walk w, int kind, int unused, float *out,
	const float *a, const float *b) {
	Instruction c;
	c.op = kind;
	EACH(i, w.n) {
		i64 at[2];
		places(w, i, at, 2);
		out[i] = apply(c, a[at[0]], b[at[1]]);
	}
}

extern "C" __global__ void dropout_shared(PARAM Walk w, float *out, const float *x, const int *seed,
	u64 salt, u32 limit, float scale) {
	u64 key = stream_key(seed, salt);
	EACH(i, w.n) {
		i64 at[1];
		places(w, i, at, 1);
		out[i] = x[i] * (philox_word(key, at[0]) <= limit ? scale : 0.f);
	}
}
