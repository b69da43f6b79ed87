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
extern "C" __global__ void __launch_bounds__(256) adam(Gate gate, float *w, float *m, float *v,
	const float *g, const float *lr, const float *step, i64 n, float beta1, float beta2,
	float eps, float decay) {
	__shared__ float factor[2];
	if (!gate.open()) return;
	if (threadIdx.x < 2) { // side by side, by the same instructions
		double left = (float)(1 - pow64(threadIdx.x ? beta2 : beta1, *step));
		factor[threadIdx.x] = (float)(threadIdx.x ? 1 / sqrt(left) : -(double)*lr / left);
	}
	__syncthreads();
	float rate = factor[0], root = factor[1];
	float left1 = (float)(1 - (double)beta1), left2 = (float)(1 - (double)beta2);
	float keep = 1 - *lr * decay;
	EACH(i, n) {
		float mi = m[i] = fmaf(beta1, m[i], left1 * g[i]);
		float vi = v[i] = fmaf(beta2, v[i], left2 * g[i] * g[i]);
		w[i] = fmaf(rate, mi / fmaf(sqrtf(vi), root, eps), decay == 0 ? w[i] : w[i] * keep);
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
extern "C" __global__ void row_sums(double *out, const float *v, i64 outer, i64 p, i64 n) {
	Team t = team(0);
	for (i64 i = t.first; i < outer * n; i += t.step) {
		double s = sum_in_order(v + i / n * n * p + i % n, p, n);
		if (t.lane == 0) out[i] = s;
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
extern "C" __global__ void adafactor_rate(float *rate, const float *updates, const float *weights,
	const float *lr, i64 n, i64 parts, float least, float clip, int absolute) {
	if (blockIdx.x || threadIdx.x >= 32) return;
	double u = sum_in_order(updates, parts, 1), s = sum_in_order(weights, parts, 1);
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
