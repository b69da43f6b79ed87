// Updates of variables, in place: a thread for each element. A gate is a count of executions and
// a number of which it must be a multiple; its address is 0 where there is none.
struct Gate {
	const float *count;
	i64 every;
	__device__ bool open() const { return !count || (i64)*count % every == 0; }
};

extern "C" __global__ void sgd(Gate gate, float *w, const float *g, const float *lr, i64 n) {
	if (!gate.open()) return;
	EACH(i, n) w[i] = fmaf(-*lr, g[i], w[i]);
}
extern "C" __global__ void momentum(Gate gate, float *w, float *m, const float *g,
	const float *lr, i64 n, float mu, int nesterov) {
	if (!gate.open()) return;
	EACH(i, n) {
		float v = nesterov ? m[i] * mu + g[i] : fmaf(mu, m[i], g[i]);
		m[i] = v;
		w[i] = fmaf(-*lr, nesterov ? v * mu + g[i] : v, w[i]);
	}
}
extern "C" __global__ void lion(Gate gate, float *w, float *m, const float *g, const float *lr,
	i64 n, float beta1, float beta2, float decay) {
	if (!gate.open()) return;
	float keep = 1 - *lr * decay;
	EACH(i, n) {
		float next = fmaf(1 - beta1, g[i], m[i] * beta1);
		float sign = next > 0 ? 1.f : next < 0 ? -1.f : next;
		w[i] = fmaf(-*lr, sign, w[i] * keep);
		m[i] = fmaf(1 - beta2, g[i], m[i] * beta2);
	}
}
// decay is that of AdamW, 0 for Adam.
struct Adam {
	float beta1, beta2, eps, decay;
};
// What a step of Adam is for all elements alike. All threads of a block take part.
struct AdamStep {
	float beta1, beta2, left1, left2, eps, rate, root, keep;
	__device__ AdamStep(const Adam &a, const float *lr, const float *step) {
		__shared__ float factor[2];
		if (threadIdx.x < 2) { // side by side, by the same instructions
			double left = (float)(1 - pow64(threadIdx.x ? a.beta2 : a.beta1, *step));
			factor[threadIdx.x] = (float)(threadIdx.x ? 1 / sqrt(left) : -(double)*lr / left);
		}
		__syncthreads();
		beta1 = a.beta1, beta2 = a.beta2, eps = a.eps, rate = factor[0], root = factor[1];
		left1 = (float)(1 - (double)beta1), left2 = (float)(1 - (double)beta2);
		keep = a.decay == 0 ? 1 : 1 - *lr * a.decay;
	}
	__device__ __forceinline__ float next(float w, float &m, float &v, float g) const {
		m = fmaf(beta1, m, left1 * g);
		v = fmaf(beta2, v, left2 * g * g);
		return fmaf(rate, m / fmaf(sqrtf(v), root, eps), w * keep);
	}
};
extern "C" __global__ void __launch_bounds__(256) adam(Gate gate, float *w, float *m, float *v,
	const float *g, const float *lr, const float *step, i64 n, Adam config) {
	if (!gate.open()) return;
	AdamStep s(config, lr, step);
	EACH(i, n) w[i] = s.next(w[i], m[i], v[i], g[i]);
}

// Moments in few bits, rounded by the random words of their places: in a window, those that they
// have in the whole.
__device__ __forceinline__ u64 moment_key(const float *step, u64 salt) {
	return scramble(scramble((u64)*step) ^ salt);
}
__device__ __forceinline__ i64 moment_place(const Walk &window, i64 i) {
	i64 at[1] = {i};
	if (window.rank) places(window, i, at, 1);
	return at[0];
}
__device__ __forceinline__ u16 drawn16(float x, u32 random) {
	u32 u = __float_as_uint(x);
	return (u16)(is_nan(x) ? u >> 16 | 0x40 : (u + random) >> 16);
}
// A variable, rounded as well if it is of bfloat16, with its gradient: bits 0 and 1 of halves.
struct Weights {
	void *w;
	const void *g;
	int halves;
	u64 key;
	__device__ __forceinline__ void next(const AdamStep &s, i64 i, i64 place, float &m, float &v) {
		float x = s.next(element(w, i, halves & 1), m, v, element(g, i, halves & 2));
		if (halves & 1) ((u16 *)w)[i] = drawn16(x, philox_word(scramble(key), place) & 0xffff);
		else ((float *)w)[i] = x;
	}
};
extern "C" __global__ void __launch_bounds__(256) adam_bf16(PARAM Walk window, Gate gate, void *w,
	u16 *m, u16 *v, const void *g, const float *lr, const float *step, i64 n, Adam config,
	int halves, u64 salt) {
	if (!gate.open()) return;
	AdamStep s(config, lr, step);
	Weights x{w, g, halves, moment_key(step, salt)};
	EACH(i, n) {
		float mi = from_bf16(m[i]), vi = from_bf16(v[i]);
		i64 place = moment_place(window, i);
		x.next(s, i, place, mi, vi);
		u32 word = philox_word(x.key, place);
		m[i] = drawn16(mi, word & 0xffff), v[i] = drawn16(vi, word >> 16);
	}
}
// The scale of a block of moments of 8 bits, whose largest has the highest of so many octaves.
struct Scale {
	u32 exponent;
	bool finite;
	__device__ Scale(float largest, u32 octaves) {
		u32 bits = __float_as_uint(largest), e = (bits + (1 << 20)) >> 23;
		finite = bits < 0x7f800000;
		exponent = (e < 40 ? 40 : e) - octaves;
	}
	__device__ float value() const { return __uint_as_float(finite ? exponent << 23 : 0x7fc00000); }
	// The 3 bits behind the point, and those before it, of a number in steps of the scale.
	__device__ u32 code(float x, u32 random, u32 least, u32 most) const {
		if (!finite) return 0;
		u32 c = (__float_as_uint(x * __uint_as_float((254 - exponent) << 23) + 1) + random -
			0x3f800000) >> 20;
		return c < least ? least : c > most ? most : c;
	}
};
__device__ __forceinline__ float eighth(u32 code) {
	return __uint_as_float((code << 20) + 0x3f800000) - 1;
}
// A block of threads has a block of 256 moments.
extern "C" __global__ void __launch_bounds__(256) adam_8bit(PARAM Walk window, Gate gate, void *w,
	u8 *m, float *m_scale, u8 *v, float *v_scale, const void *g, const float *lr,
	const float *step, i64 n, Adam config, int halves, u64 salt) {
	if (!gate.open()) return;
	AdamStep s(config, lr, step);
	Team t = team(1);
	Weights x{w, g, halves, moment_key(step, salt)};
	for (i64 b = t.first; b * 256 < n; b += t.step) {
		i64 i = b * 256 + t.lane, place = moment_place(window, i);
		float mi = 0, vi = 0;
		if (i < n) {
			mi = eighth(m[i] & 127) * m_scale[b], vi = eighth(v[i]) * v_scale[b];
			if (m[i] & 128) mi = -mi;
			x.next(s, i, place, mi, vi);
		}
		Scale sm(max_of(t, fabsf(mi)), 15), sv(max_of(t, vi), 31);
		if (t.lane == 0) m_scale[b] = sm.value(), v_scale[b] = sv.value();
		if (i >= n) continue;
		u32 word = philox_word(x.key, place), sign = __float_as_uint(mi) >> 31 << 7;
		m[i] = (u8)(sm.code(fabsf(mi), word << 16 >> 12, 0, 127) | (sm.finite ? sign : 0));
		v[i] = (u8)sv.code(vi, word >> 16 << 4, 1, 255);
	}
}
// The sum starts anew where a gate opens.
extern "C" __global__ void accumulate(Gate gate, float *v, const float *x, i64 n) {
	bool anew = gate.count && gate.open();
	EACH(i, n) v[i] = anew ? 0.f : v[i] + x[i];
}
extern "C" __global__ void running_average(float *v, const float *x, i64 n, float momentum) {
	EACH(i, n) v[i] = fmaf(1 - momentum, x[i], v[i] * momentum);
}

// Adafactor, whose sums have the host's order. A parameter is seen as [a p b q c], p and q being
// the factored axes, or as rows of q·c elements; statistics of rows are [a p b c], those of
// columns [a b q c]. Squares are added up in blocks of rows and of columns.
struct Factors {
	i64 a, p, b, q, c, down, across; // a block: rows along p, places along q
	__device__ i64 width() const { return q * c; }
	__device__ i64 rows() const { return a * p * b; }
	__device__ i64 column(i64 row) const { return (row / (p * b) * b + row % b) * width(); }
};
__device__ __forceinline__ float decay_of(const float *step, float decay) {
	return (float)(1 - pow64(*step, -(double)decay));
}
// Of every row the sums of the squares in each block of columns: of neighbours by a warp.
extern "C" __global__ void __launch_bounds__(256) adafactor_rows(Factors f, float *out,
	const float *g) {
	Team t = team(0);
	i64 stats = f.rows() * f.c, blocks = (f.q + f.across - 1) / f.across;
	for (i64 i = t.first; i < f.rows() * blocks; i += t.step) {
		i64 row = i % f.rows(), block = i / f.rows(), from = block * f.across * f.c;
		i64 n = from + f.across * f.c < f.width() ? f.across * f.c : f.width() - from;
		const float *x = g + row * f.width() + from;
		float *to = out + block * stats + row * f.c;
		if (f.c == 1) {
			float s = sum_lanes(n, [=](i64 k) { return x[k]; }, Squared());
			if (t.lane == 0) *to = s;
			continue;
		}
		for (i64 c = t.lane; c < f.c; c += t.size) {
			float s = 0;
			for (i64 k = c; k < n; k += f.c) s += x[k] * x[k];
			to[c] = s;
		}
	}
}
// Of every column those in each block of rows.
extern "C" __global__ void adafactor_columns(Factors f, float *out, const float *g) {
	i64 stats = f.a * f.b * f.width(), blocks = (f.p + f.down - 1) / f.down;
	EACH(i, stats * blocks) {
		i64 ab = i % stats / f.width(), lo = i / stats * f.down;
		i64 hi = lo + f.down < f.p ? lo + f.down : f.p;
		const float *x = g + ((ab / f.b * f.p + lo) * f.b + ab % f.b) * f.width() + i % f.width();
		float s = 0;
		for (i64 p = lo; p < hi; p++, x += f.b * f.width()) s = fmaf(*x, *x, s);
		out[i] = s;
	}
}
// Moving averages of the means over so many elements, whose sums are given in blocks.
extern "C" __global__ void moving_means(Gate gate, float *v, const float *sums, const float *step,
	i64 n, i64 blocks, i64 of, float decay, float eps) {
	__shared__ float d;
	if (!gate.open()) return;
	if (threadIdx.x == 0) d = decay_of(step, decay);
	__syncthreads();
	EACH(i, n) {
		float s = sums[i];
		for (i64 k = 1; k < blocks; k++) s += sums[k * n + i];
		v[i] = fmaf((1 - d) / (float)of, s, v[i] * d + (1 - d) * eps);
	}
}
// Sums over p, and √(mean/v), of p statistics of rows that are n apart.
extern "C" __global__ void __launch_bounds__(256) row_sums(double *out, const float *v, i64 outer,
	i64 p, i64 n) {
	for (i64 i = blockIdx.x; i < outer * n; i += gridDim.x) {
		double s = sum_wide(v + i / n * n * p + i % n, p, n);
		if (threadIdx.x == 0) out[i] = s;
	}
}
extern "C" __global__ void row_factors(float *out, const float *v, const double *sums, i64 outer,
	i64 p, i64 n) {
	EACH(i, outer * p * n) out[i] = (float)sqrt(sums[i / (p * n) * n + i % n] / p / v[i]);
}
// The update of an element at a place of a row, but for the rate.
__device__ __forceinline__ float factored(const Factors &f, const float *rows, const float *v,
	float g, i64 row, i64 k) {
	return g * rsqrt32(v[f.column(row) + k]) * rows[row * f.c + (f.c == 1 ? 0 : k % f.c)];
}
// Of every row the squares of the updates and those of its elements, added up.
extern "C" __global__ void __launch_bounds__(256) adafactor_squares(Factors f, float *updates,
	float *weights, const float *w, const float *v, const float *rows, const float *g) {
	const i64 span = 1024;
	Team t = team(0);
	for (i64 r = t.first; r < f.rows(); r += t.step) {
		i64 first = r * f.width();
		double u = 0;
		for (i64 at = 0; at < f.width(); at += span)
			u += sum_lanes(f.width() - at < span ? f.width() - at : span, [=](i64 i) {
				return factored(f, rows, v, g[first + at + i], r, at + i);
			}, Squared());
		float s = sum_spans(w + first, f.width(), Squared());
		if (t.lane == 0) updates[r] = (float)u, weights[r] = s;
	}
}
// Where nothing is factored every element has a second moment of its own, and spans of elements
// take the place of rows.
extern "C" __global__ void __launch_bounds__(256) adafactor_moments(Gate gate, float *updates,
	float *weights, const float *w, float *v, const float *g, const float *step, i64 n,
	float decay, float eps) {
	__shared__ float shared;
	if (!gate.open()) return;
	if (threadIdx.x == 0) shared = decay_of(step, decay);
	__syncthreads();
	const i64 span = 1024;
	Team t = team(0);
	float d = shared;
	for (i64 r = t.first; r * span < n; r += t.step) {
		i64 at = r * span, length = n - at < span ? n - at : span;
		float u = sum_lanes(length, [=](i64 i) {
			float x = g[at + i], now = fmaf(1 - d, x * x + eps, v[at + i] * d);
			v[at + i] = now;
			return rsqrt32(now) * x;
		}, Squared());
		float s = sum_spans(w + at, length, Squared());
		if (t.lane == 0) updates[r] = u, weights[r] = s;
	}
}
// What updates are multiplied by: the learning rate by the size of the parameter's elements and
// over that of the updates.
extern "C" __global__ void __launch_bounds__(256) adafactor_rate(float *rate, const float *updates,
	const float *weights, const float *lr, i64 n, i64 parts, float least, float clip,
	int absolute) {
	if (blockIdx.x) return;
	double u = sum_wide(updates, parts, 1), s = sum_wide(weights, parts, 1);
	double size = sqrt(s / n), rms = sqrt(u / n) / clip;
	size = absolute ? 1 : size <= least ? (double)least : size;
	if (threadIdx.x == 0) *rate = (float)(*lr * size / (rms <= 1 ? 1. : rms));
}
extern "C" __global__ void __launch_bounds__(256) adafactor(Gate gate, Factors f, float *w,
	const float *v, const float *rows, const float *g, const float *rate, i64 n) {
	if (!gate.open()) return;
	EACH(i, n) {
		float u = rows ? factored(f, rows, v, g[i], i / f.width(), i % f.width())
			: rsqrt32(v[i]) * g[i];
		w[i] = fmaf(-*rate, u, w[i]);
	}
}
