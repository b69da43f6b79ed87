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
// decay is that of AdamW, 0 for Adam.
extern "C" __global__ void __launch_bounds__(256) adam(Gate gate, float *w, float *m, float *v,
	const float *g, const float *lr, const float *step, i64 n, float beta1, float beta2,
	float eps, float decay) {
	__shared__ float rate, root;
	if (!gate.open()) return;
	if (threadIdx.x == 0) {
		float first = (float)(1 - pow((double)beta1, (double)*step));
		float second = (float)(1 - pow((double)beta2, (double)*step));
		rate = (float)(-(double)*lr / first);
		root = (float)(1 / sqrt((double)second));
	}
	__syncthreads();
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

// Adafactor. A parameter is seen as [a p b q c], p and q being the factored axes; statistics of
// rows are [a p b c], those of columns [a b q c]. Where none are factored, every element has a
// second moment of its own.
struct Factors {
	i64 a, p, b, q, c;
	__device__ i64 row(i64 i) const { return i / c / q * c + i % c; }
	__device__ i64 column(i64 i) const {
		i64 width = q * c, r = i / width;
		return (r / (p * b) * b + r % b) * width + i % width;
	}
};
__device__ __forceinline__ float decay_of(const float *step, float decay) {
	return (float)(1 - pow((double)*step, -(double)decay));
}
// Squares of rows of inner elements, added up in parts.
extern "C" __global__ void square_columns(Parts p, float *out, const float *x, i64 inner) {
	EACH(i, p.rows * p.parts * inner) {
		i64 part = i / inner;
		const float *from = x + part / p.parts * p.n * inner + i % inner;
		float s = 0;
		for (i64 k = p.lo(part); k < p.hi(part); k++) s = fmaf(from[k * inner], from[k * inner], s);
		out[i] = s;
	}
}
// Moving averages of the means over n elements whose sums are given.
extern "C" __global__ void moving_means(Gate gate, float *v, const float *sums, const float *step,
	i64 n, i64 of, float decay, float eps) {
	__shared__ float d;
	if (!gate.open()) return;
	if (threadIdx.x == 0) d = decay_of(step, decay);
	__syncthreads();
	EACH(i, n) v[i] = fmaf((1 - d) / of, sums[i], v[i] * d + (1 - d) * eps);
}
// √(mean/v), mean being that of v over p rows of inner elements whose sums are given.
extern "C" __global__ void row_factors(float *out, const float *v, const float *sums, i64 n,
	i64 p, i64 inner) {
	EACH(i, n) {
		double mean = (double)sums[i / inner / p * inner + i % inner] / p;
		out[i] = (float)sqrt(mean / v[i]);
	}
}
__device__ inline float update_of(const Factors &f, const float *rows, const float *v, float g,
	i64 i) {
	if (!rows) return g * (1.f / sqrtf(v[i]));
	return g * (1.f / sqrtf(v[f.column(i)])) * rows[f.row(i)];
}
// Of parts of a parameter, the squares of the updates and those of its elements, added up. Where
// nothing is factored, the second moments come first.
extern "C" __global__ void __launch_bounds__(256) adafactor_squares(Gate gate, Factors f, Parts p,
	float *updates, float *weights, const float *w, float *v, const float *rows, const float *g,
	const float *step, float decay, float eps, int wide) {
	if (!gate.open()) return;
	Team t = team(wide);
	float d = decay_of(step, decay);
	for (i64 r = t.first; r < p.parts; r += t.step) {
		float u = 0, s = 0;
		for (i64 i = p.lo(r) + t.lane; i < p.hi(r); i += t.size) {
			if (!rows) v[i] = fmaf(1 - d, g[i] * g[i] + eps, v[i] * d);
			float x = update_of(f, rows, v, g[i], i);
			u = fmaf(x, x, u), s = fmaf(w[i], w[i], s);
		}
		u = sum_of(t, u), s = sum_of(t, s);
		if (t.lane == 0) updates[r] = u, weights[r] = s;
	}
}
extern "C" __global__ void __launch_bounds__(256) adafactor(Gate gate, Factors f, float *w,
	const float *v, const float *rows, const float *g, const float *updates,
	const float *weights, const float *lr, i64 n, i64 parts, float least, float clip,
	int absolute) {
	__shared__ float rate;
	if (!gate.open()) return;
	if (threadIdx.x == 0) {
		double u = 0, s = 0;
		for (i64 i = 0; i < parts; i++) u += updates[i], s += weights[i];
		double size = sqrt(s / n), rms = sqrt(u / n) / clip;
		size = absolute ? 1 : size > least ? size : (double)least;
		rate = (float)(*lr * size / (rms > 1 ? rms : 1.));
	}
	__syncthreads();
	EACH(i, n) w[i] = fmaf(-rate, update_of(f, rows, v, g[i], i), w[i]);
}
