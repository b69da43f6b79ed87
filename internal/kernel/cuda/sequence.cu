// Recurrent cells, and the loss of readings of frames.

// Rows of a vector.
extern "C" __global__ void repeat_row(float *out, const float *row, i64 rows, i64 n) {
	EACH(i, rows * n) out[i] = row[i % n];
}

// The gates of a row are i, j, f and o, each n elements.
extern "C" __global__ void lstm_cell(float *h, float *next, const float *gates,
	const float *state, i64 rows, i64 n, float bias) {
	EACH(k, rows * n) {
		const float *g = gates + k / n * 4 * n + k % n;
		float c = sigmoid(g[2 * n] + bias) * state[k];
		c = fmaf(sigmoid(g[0]), tanhf(g[n]), c);
		next[k] = c;
		h[k] = tanhf(c) * sigmoid(g[3 * n]);
	}
}
// The gradients of gates and state; more is added to that of h, if it is there.
template <class T> __device__ void lstm_cell_grad_of(float *dgates, float *dstate,
	const float *gates, const float *state, const float *next, const float *dh, const T *more,
	const float *dnext, i64 rows, i64 n, float bias) {
	EACH(k, rows * n) {
		const float *g = gates + k / n * 4 * n + k % n;
		float *to = dgates + k / n * 4 * n + k % n;
		float up = more ? dh[k] + more[k] : dh[k];
		float i = sigmoid(g[0]), j = tanhf(g[n]), f = sigmoid(g[2 * n] + bias);
		float o = sigmoid(g[3 * n]), a = tanhf(next[k]), c = state[k];
		float dc = fmaf(up * o, fmaf(-a, a, 1.f), dnext[k]);
		to[0] = dc * j * fmaf(-i, i, i);
		to[n] = dc * i * fmaf(-j, j, 1.f);
		to[2 * n] = dc * c * fmaf(-f, f, f);
		to[3 * n] = up * a * fmaf(-o, o, o);
		dstate[k] = dc * f;
	}
}
extern "C" __global__ void lstm_cell_grad(float *dgates, float *dstate, const float *gates,
	const float *state, const float *next, const float *dh, const float *more,
	const float *dnext, i64 rows, i64 n, float bias) {
	lstm_cell_grad_of(dgates, dstate, gates, state, next, dh, more, dnext, rows, n, bias);
}
extern "C" __global__ void lstm_cell_grad_16(float *dgates, float *dstate, const float *gates,
	const float *state, const float *next, const float *dh, const Half *more, const float *dnext,
	i64 rows, i64 n, float bias) {
	lstm_cell_grad_of(dgates, dstate, gates, state, next, dh, more, dnext, rows, n, bias);
}

// An item of a batch: a block reads its frames. Its lattice has a state for every label, at odd
// numbers, and for the blanks around them.
template <class T> struct Item {
	const T *logits; // from its first frame on
	const int *labels;
	i64 apart, symbols, frames, states; // frames are so far apart
	__device__ const T *frame(i64 t) const { return logits + t * apart; }
	__device__ int symbol(i64 s, bool back) const {
		if (back) s = states - 1 - s;
		return s % 2 ? labels[s / 2] : (int)symbols - 1;
	}
	// The frames that the labels take, and whether they are symbols.
	__device__ bool readable() const {
		i64 need = states / 2;
		for (i64 i = 0; i < states / 2; i++) {
			if (labels[i] < 0 || labels[i] >= symbols - 1) return false;
			need += i > 0 && labels[i] == labels[i - 1];
		}
		return need <= frames;
	}
};
template <class T>
__device__ Item<T> item_of(const T *logits, const int *labels, const int *lengths,
	const int *inputs, i64 k, i64 t, i64 b, i64 v, i64 l) {
	i64 n = lengths[k], frames = inputs[k];
	n = n < 0 ? 0 : n > l ? l : n, frames = frames < 0 ? 0 : frames > t ? t : frames;
	return Item<T>{logits + k * v, labels + k * l, b * v, v, frames, 2 * n + 1};
}
__device__ inline double log_add(double a, double b) {
	if (a < b) {
		double c = a;
		a = b, b = c;
	}
	if (b == -infinity()) return a;
	return a + log1p(exp(b - a));
}
// The logarithm of the softmax of a frame's logit is it less most and less sum.
struct Shares {
	double most, sum;
};
template <class T> __device__ Shares shares_of(Team t, const T *x, i64 n) {
	float most = -infinity();
	for (i64 i = t.lane; i < n; i += t.size) most = max_of(x[i], most);
	most = max_of(t, most);
	double s = 0;
	for (i64 i = t.lane; i < n; i += t.size) s += exp((double)x[i] - most);
	return Shares{most, log(fold<Sum<double>>(t, s))};
}
// A row of the lattice from the row before, which is 0 at the first frame.
template <class T>
__device__ Shares advance(Team team, const Item<T> &p, double *row, const double *before, i64 t,
	bool back) {
	const T *x = p.frame(t);
	Shares q = shares_of(team, x, p.symbols);
	for (i64 s = team.lane; s < p.states; s += team.size) {
		double sum = -infinity();
		int k = p.symbol(s, back);
		if (!before) {
			if (s < 2) sum = 0;
		} else {
			sum = before[s];
			if (s > 0) sum = log_add(sum, before[s - 1]);
			if (s > 2 && s % 2 == 1 && k != p.symbol(s - 2, back))
				sum = log_add(sum, before[s - 2]);
		}
		row[s] = sum + (x[k] - q.most - q.sum);
	}
	__syncthreads();
	return q;
}
template <class T> __device__ double total_of(const Item<T> &p, const double *last) {
	if (!last) return p.states == 1 ? 0. : -infinity();
	if (p.states == 1) return last[0];
	return log_add(last[p.states - 1], last[p.states - 2]);
}
template <class T> __device__ void ctc_of(float *out, const T *logits, const int *labels,
	const int *lengths, const int *inputs, double *scratch, i64 t, i64 b, i64 v, i64 l) {
	for (i64 k = blockIdx.x; k < b; k += gridDim.x) {
		Item<T> p = item_of(logits, labels, lengths, inputs, k, t, b, v, l);
		double *row = scratch + k * 2 * (2 * l + 1), *spare = row + 2 * l + 1, *before = 0;
		bool readable = p.readable();
		for (i64 f = 0; f < p.frames && readable; f++) {
			advance(team(1), p, row, before, f, false);
			before = row, row = spare, spare = before;
		}
		if (threadIdx.x == 0) out[k] = readable ? (float)-total_of(p, before) : 0.f;
		__syncthreads();
	}
}
extern "C" __global__ void __launch_bounds__(256) ctc(float *out, const float *logits,
	const int *labels, const int *lengths, const int *inputs, double *scratch, i64 t, i64 b,
	i64 v, i64 l) {
	ctc_of(out, logits, labels, lengths, inputs, scratch, t, b, v, l);
}
extern "C" __global__ void __launch_bounds__(256) ctc_16(float *out, const Half *logits,
	const int *labels, const int *lengths, const int *inputs, double *scratch, i64 t, i64 b,
	i64 v, i64 l) {
	ctc_of(out, logits, labels, lengths, inputs, scratch, t, b, v, l);
}
// Scratch has, for an item, the lattice, two rows of the mirrored one, and the symbols' share.
template <class T> __device__ void ctc_grad_of(float *out, const T *logits, const int *labels,
	const int *lengths, const int *inputs, const float *d, double *scratch, i64 t, i64 b, i64 v,
	i64 l) {
	for (i64 k = blockIdx.x; k < b; k += gridDim.x) {
		Item<T> p = item_of(logits, labels, lengths, inputs, k, t, b, v, l);
		i64 n = p.states, me = threadIdx.x;
		bool counts = d[k] != 0 && p.readable();
		for (i64 f = counts ? p.frames : 0; f < t; f++)
			for (i64 i = me; i < v; i += blockDim.x) out[(f * b + k) * v + i] = 0;
		if (!counts || p.frames == 0) continue;
		double *lattice = scratch + k * ((t + 2) * (2 * l + 1) + v), *last = 0;
		for (i64 f = 0; f < p.frames; f++) {
			advance(team(1), p, lattice + f * n, last, f, false);
			last = lattice + f * n;
		}
		double total = total_of(p, last), *row = last + n, *spare = row + n, *after = 0;
		double *symbols = spare + n;
		for (i64 f = p.frames - 1; f >= 0; f--) {
			Shares q = advance(team(1), p, row, after, f, true);
			const T *x = p.frame(f);
			for (i64 i = me; i < v; i += blockDim.x) symbols[i] = 0;
			__syncthreads();
			// a label may be there more than once: its states are added up in order
			for (i64 s = me; s < n; s += blockDim.x) {
				int symbol = p.symbol(s, false);
				bool first = true;
				for (i64 z = s % 2; z < s; z += 2) first = first && p.symbol(z, false) != symbol;
				if (!first) continue;
				double sum = 0;
				for (i64 z = s; z < n; z += 2) {
					double a = lattice[f * n + z], m = row[n - 1 - z];
					if (p.symbol(z, false) == symbol && a != -infinity() && m != -infinity())
						sum += exp(a + m - (x[symbol] - q.most - q.sum) - total);
				}
				symbols[symbol] = sum;
			}
			__syncthreads();
			for (i64 i = me; i < v; i += blockDim.x)
				out[(f * b + k) * v + i] =
					(float)(d[k] * (exp(x[i] - q.most - q.sum) - symbols[i]));
			__syncthreads();
			after = row, row = spare, spare = after;
		}
	}
}
extern "C" __global__ void __launch_bounds__(256) ctc_grad(float *out, const float *logits,
	const int *labels, const int *lengths, const int *inputs, const float *d, double *scratch,
	i64 t, i64 b, i64 v, i64 l) {
	ctc_grad_of(out, logits, labels, lengths, inputs, d, scratch, t, b, v, l);
}
extern "C" __global__ void __launch_bounds__(256) ctc_grad_16(float *out, const Half *logits,
	const int *labels, const int *lengths, const int *inputs, const float *d, double *scratch,
	i64 t, i64 b, i64 v, i64 l) {
	ctc_grad_of(out, logits, labels, lengths, inputs, d, scratch, t, b, v, l);
}
extern "C" __global__ void ctc_readable(float *out, const int *labels, const int *lengths,
	const int *inputs, i64 b, i64 l) {
	EACH(k, b) {
		i64 n = lengths[k] < 0 ? 0 : lengths[k] > l ? l : lengths[k], need = n;
		for (i64 i = 1; i < n; i++) need += labels[k * l + i] == labels[k * l + i - 1];
		out[k] = inputs[k] > 0 && need <= inputs[k];
	}
}
