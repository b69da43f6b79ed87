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
