// Softmax, losses and norms of rows: a team for each.

// mode is 1 for the logarithm, and 2 for zeros where all of a row is -infinity.
template <class T> __device__ void softmax_of(T *out, const T *x, i64 rows, i64 n, int mode,
	int wide) {
	Team t = team(wide);
	for (i64 r = t.first; r < rows; r += t.step) {
		const T *from = x + r * n;
		T *to = out + r * n;
		float most = -infinity(), s = 0;
		for (i64 i = t.lane; i < n; i += t.size) most = max_of(from[i], most);
		most = max_of(t, most);
		for (i64 i = t.lane; i < n; i += t.size) s += expf(from[i] - most);
		s = sum_of(t, s);
		float rest = logf(s);
		bool hidden = mode == 2 && most == -infinity();
		for (i64 i = t.lane; i < n; i += t.size) {
			float d = from[i] - most;
			to[i] = mode == 1 ? d - rest : hidden ? 0.f : expf(d) / s;
		}
	}
}
extern "C" __global__ void __launch_bounds__(256) softmax(float *out, const float *x, i64 rows,
	i64 n, int mode, int wide) {
	softmax_of(out, x, rows, n, mode, wide);
}
extern "C" __global__ void __launch_bounds__(256) softmax_16(Half *out, const Half *x, i64 rows,
	i64 n, int mode, int wide) {
	softmax_of(out, x, rows, n, mode, wide);
}

template <class T> __device__ void softmax_grad_of(T *out, const T *y, const T *d, i64 rows, i64 n,
	int wide) {
	Team t = team(wide);
	for (i64 r = t.first; r < rows; r += t.step) {
		float s = 0;
		for (i64 i = r * n + t.lane; i < (r + 1) * n; i += t.size) s = fmaf(y[i], d[i], s);
		s = sum_of(t, s);
		for (i64 i = r * n + t.lane; i < (r + 1) * n; i += t.size) out[i] = y[i] * (d[i] - s);
	}
}
extern "C" __global__ void __launch_bounds__(256) softmax_grad(float *out, const float *y,
	const float *d, i64 rows, i64 n, int wide) {
	softmax_grad_of(out, y, d, rows, n, wide);
}
extern "C" __global__ void __launch_bounds__(256) softmax_grad_16(Half *out, const Half *y,
	const Half *d, i64 rows, i64 n, int wide) {
	softmax_grad_of(out, y, d, rows, n, wide);
}

template <class T> __device__ void log_sum_exp_of(float *out, const T *x, i64 rows, i64 n,
	int wide) {
	Team t = team(wide);
	for (i64 r = t.first; r < rows; r += t.step) {
		const T *from = x + r * n;
		float most = -infinity(), s = 0;
		for (i64 i = t.lane; i < n; i += t.size) most = max_of(from[i], most);
		most = max_of(t, most);
		for (i64 i = t.lane; i < n; i += t.size) s += expf(from[i] - most);
		s = sum_of(t, s);
		if (t.lane == 0) out[r] = fabsf(most) == infinity() ? most : most + logf(s);
	}
}
extern "C" __global__ void __launch_bounds__(256) log_sum_exp(float *out, const float *x,
	i64 rows, i64 n, int wide) {
	log_sum_exp_of(out, x, rows, n, wide);
}
extern "C" __global__ void __launch_bounds__(256) log_sum_exp_16(float *out, const Half *x,
	i64 rows, i64 n, int wide) {
	log_sum_exp_of(out, x, rows, n, wide);
}

// NaN where a label is no class.
template <class T> __device__ void cross_entropy_of(float *out, const T *x, const int *labels,
	i64 rows, i64 n, float high, float low, int wide) {
	Team t = team(wide);
	for (i64 r = t.first; r < rows; r += t.step) {
		const T *from = x + r * n;
		float most = -infinity(), s = 0, below = 0;
		for (i64 i = t.lane; i < n; i += t.size) most = max_of(from[i], most);
		most = max_of(t, most);
		for (i64 i = t.lane; i < n; i += t.size) {
			s += expf(from[i] - most);
			below += most - from[i];
		}
		s = sum_of(t, s);
		if (low != 0) below = sum_of(t, below);
		int label = labels[r];
		if (t.lane == 0) {
			float at = label >= 0 && label < n ? from[label] : infinity() - infinity();
			out[r] = logf(s) + high * (most - at) + (low != 0 ? low * below : 0.f);
		}
	}
}
extern "C" __global__ void __launch_bounds__(256) cross_entropy(float *out, const float *x,
	const int *labels, i64 rows, i64 n, float high, float low, int wide) {
	cross_entropy_of(out, x, labels, rows, n, high, low, wide);
}
extern "C" __global__ void __launch_bounds__(256) cross_entropy_16(float *out, const Half *x,
	const int *labels, i64 rows, i64 n, float high, float low, int wide) {
	cross_entropy_of(out, x, labels, rows, n, high, low, wide);
}

template <class T> __device__ void cross_entropy_grad_of(T *out, const T *x, const int *labels,
	const float *d, i64 rows, i64 n, float high, float low, int wide) {
	Team t = team(wide);
	for (i64 r = t.first; r < rows; r += t.step) {
		const T *from = x + r * n;
		T *to = out + r * n;
		float most = -infinity(), s = 0, g = d[r];
		int label = labels[r];
		if (g == 0) { // nothing to learn
			for (i64 i = t.lane; i < n; i += t.size) to[i] = 0;
			continue;
		}
		for (i64 i = t.lane; i < n; i += t.size) most = max_of(from[i], most);
		most = max_of(t, most);
		for (i64 i = t.lane; i < n; i += t.size) s += expf(from[i] - most);
		float factor = g / sum_of(t, s);
		for (i64 i = t.lane; i < n; i += t.size) {
			float v = fmaf(expf(from[i] - most), factor, -(low * g));
			to[i] = i == label ? v - high * g : v;
		}
	}
}
extern "C" __global__ void __launch_bounds__(256) cross_entropy_grad(float *out, const float *x,
	const int *labels, const float *d, i64 rows, i64 n, float high, float low, int wide) {
	cross_entropy_grad_of(out, x, labels, d, rows, n, high, low, wide);
}
extern "C" __global__ void __launch_bounds__(256) cross_entropy_grad_16(Half *out, const Half *x,
	const int *labels, const float *d, i64 rows, i64 n, float high, float low, int wide) {
	cross_entropy_grad_of(out, x, labels, d, rows, n, high, low, wide);
}

template <class T> __device__ void correct_of(float *out, const T *x, const int *labels, i64 rows,
	i64 n, int wide) {
	Team t = team(wide);
	for (i64 r = t.first; r < rows; r += t.step) {
		Best<float> b{0, -1, false};
		for (i64 i = t.lane; i < n; i += t.size) b.take(x[r * n + i], (int)i);
		best_of(t, b);
		if (t.lane == 0) out[r] = b.at == labels[r];
	}
}
extern "C" __global__ void __launch_bounds__(256) correct(float *out, const float *x,
	const int *labels, i64 rows, i64 n, int wide) {
	correct_of(out, x, labels, rows, n, wide);
}
extern "C" __global__ void __launch_bounds__(256) correct_16(float *out, const Half *x,
	const int *labels, i64 rows, i64 n, int wide) {
	correct_of(out, x, labels, rows, n, wide);
}

extern "C" __global__ void kept_labels(int *kept, u8 *counted, const int *labels, i64 n,
	i64 ignore) {
	EACH(i, n) {
		bool counts = labels[i] != ignore;
		kept[i] = counts ? labels[i] : 0;
		counted[i] = counts;
	}
}

// Mean and inverse deviation of n elements; centered is false for a root mean square.
struct Moments {
	float mean, inverse;
};
template <class T>
__device__ Moments moments(Team t, const T *x, i64 n, float eps, int centered) {
	float s = 0, mean = 0, squares = 0;
	if (centered) {
		for (i64 i = t.lane; i < n; i += t.size) s += x[i];
		mean = sum_of(t, s) / n;
	}
	for (i64 i = t.lane; i < n; i += t.size) squares = fmaf(x[i] - mean, x[i] - mean, squares);
	squares = sum_of(t, squares);
	return Moments{mean, (float)(1 / sqrt((double)squares / n + eps))};
}

// Rows of c channels of s elements each, of which scale and bias, which may be none, have one
// element.
template <class T> __device__ void row_norm_of(T *out, const T *x, const float *scale,
	const float *bias, i64 rows, i64 c, i64 s, float eps, int centered, int wide) {
	Team t = team(wide);
	i64 n = c * s;
	for (i64 r = t.first; r < rows; r += t.step) {
		const T *from = x + r * n;
		Moments m = moments(t, from, n, eps, centered);
		for (i64 i = t.lane; i < n; i += t.size) {
			i64 ch = s == 1 ? i : i / s;
			float y = (from[i] - m.mean) * m.inverse * scale[ch];
			out[r * n + i] = bias ? y + bias[ch] : y;
		}
	}
}
extern "C" __global__ void __launch_bounds__(256) row_norm(float *out, const float *x,
	const float *scale, const float *bias, i64 rows, i64 c, i64 s, float eps, int centered,
	int wide) {
	row_norm_of(out, x, scale, bias, rows, c, s, eps, centered, wide);
}
extern "C" __global__ void __launch_bounds__(256) row_norm_16(Half *out, const Half *x,
	const float *scale, const float *bias, i64 rows, i64 c, i64 s, float eps, int centered,
	int wide) {
	row_norm_of(out, x, scale, bias, rows, c, s, eps, centered, wide);
}

// inv·(g − mean(g) − y·mean(g·y)) with y the normalised row and g = d·scale.
template <class T> __device__ void norm_grad_of(T *out, const T *x, const float *scale, const T *d,
	i64 rows, i64 c, i64 s, float eps, int centered, int wide) {
	Team t = team(wide);
	i64 n = c * s;
	for (i64 r = t.first; r < rows; r += t.step) {
		const T *from = x + r * n, *up = d + r * n;
		Moments m = moments(t, from, n, eps, centered);
		float sum = 0, along = 0;
		for (i64 i = t.lane; i < n; i += t.size) {
			float g = up[i] * scale[s == 1 ? i : i / s];
			sum += g;
			along = fmaf(g, (from[i] - m.mean) * m.inverse, along);
		}
		float mean = centered ? sum_of(t, sum) / n : 0;
		along = sum_of(t, along) / n;
		for (i64 i = t.lane; i < n; i += t.size) {
			float g = up[i] * scale[s == 1 ? i : i / s], y = (from[i] - m.mean) * m.inverse;
			out[r * n + i] = m.inverse * (g - mean - y * along);
		}
	}
}
extern "C" __global__ void __launch_bounds__(256) norm_grad(float *out, const float *x,
	const float *scale, const float *d, i64 rows, i64 c, i64 s, float eps, int centered, int wide) {
	norm_grad_of(out, x, scale, d, rows, c, s, eps, centered, wide);
}
extern "C" __global__ void __launch_bounds__(256) norm_grad_16(Half *out, const Half *x,
	const float *scale, const Half *d, i64 rows, i64 c, i64 s, float eps, int centered, int wide) {
	norm_grad_of(out, x, scale, d, rows, c, s, eps, centered, wide);
}

// Mean and inverse deviation of every row, side by side.
template <class T> __device__ void norm_moments_of(float *out, const T *x, i64 rows, i64 n,
	float eps, int centered, int wide) {
	Team t = team(wide);
	for (i64 r = t.first; r < rows; r += t.step) {
		Moments m = moments(t, x + r * n, n, eps, centered);
		if (t.lane == 0) out[2 * r] = m.mean, out[2 * r + 1] = m.inverse;
	}
}
extern "C" __global__ void __launch_bounds__(256) norm_moments(float *out, const float *x, i64 rows,
	i64 n, float eps, int centered, int wide) {
	norm_moments_of(out, x, rows, n, eps, centered, wide);
}
extern "C" __global__ void __launch_bounds__(256) norm_moments_16(float *out, const Half *x,
	i64 rows, i64 n, float eps, int centered, int wide) {
	norm_moments_of(out, x, rows, n, eps, centered, wide);
}

// Parts of the sums, over rows, of gradients times normalised elements: those of a scale.
template <class T> __device__ void norm_scale_of(Parts p, float *out, const T *x, const T *d,
	const float *moments, i64 n) {
	EACH(i, p.parts * n) {
		float s = 0;
		for (i64 r = p.lo(i / n); r < p.hi(i / n); r++) {
			i64 at = r * n + i % n;
			s = fmaf((x[at] - moments[2 * r]) * moments[2 * r + 1], d[at], s);
		}
		out[i] = s;
	}
}
extern "C" __global__ void norm_scale(Parts p, float *out, const float *x, const float *d,
	const float *moments, i64 n) {
	norm_scale_of(p, out, x, d, moments, n);
}
extern "C" __global__ void norm_scale_16(Parts p, float *out, const Half *x, const Half *d,
	const float *moments, i64 n) {
	norm_scale_of(p, out, x, d, moments, n);
}

// Of every row and channel Σ d·y and Σ d: what the row adds to the gradients of scale and bias.
template <class T> __device__ void norm_channels_of(float *scales, float *biases, const T *x,
	const T *d, const float *moments, i64 rows, i64 c, i64 s, int wide) {
	Team t = team(wide);
	for (i64 i = t.first; i < rows * c; i += t.step) {
		float mean = moments[2 * (i / c)], inverse = moments[2 * (i / c) + 1], along = 0, sum = 0;
		for (i64 k = i * s + t.lane; k < (i + 1) * s; k += t.size) {
			along = fmaf((x[k] - mean) * inverse, d[k], along);
			sum += d[k];
		}
		along = sum_of(t, along), sum = sum_of(t, sum);
		if (t.lane == 0) scales[i] = along, biases[i] = sum;
	}
}
extern "C" __global__ void __launch_bounds__(256) norm_channels(float *scales, float *biases,
	const float *x, const float *d, const float *moments, i64 rows, i64 c, i64 s, int wide) {
	norm_channels_of(scales, biases, x, d, moments, rows, c, s, wide);
}
extern "C" __global__ void __launch_bounds__(256) norm_channels_16(float *scales, float *biases,
	const Half *x, const Half *d, const float *moments, i64 rows, i64 c, i64 s, int wide) {
	norm_channels_of(scales, biases, x, d, moments, rows, c, s, wide);
}
