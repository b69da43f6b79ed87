// Updates that are put to places. Of those that are put to one place, the thread of the first puts
// them all, in their order; it finds them by looking through all that may be there. An update
// outside is left out.

// What a place and an update become: set, sum, product, max, min.
template <class T> __device__ __forceinline__ T joined(T a, T b, int how) {
	switch (how) {
	case 0: return b;
	case 1: return a + b;
	case 2: return a * b;
	case 3: return a > b || a != a ? a : b;
	default: return a < b || a != a ? a : b;
	}
}

// Candidates are updates first, first+step, … of count, of which me is one; same says which are put
// where me is. Update j is at j·scale + column.
template <class T, class Same> __device__ void put_all(T *to, const T *updates, i64 first, i64 step,
	i64 count, i64 me, i64 scale, i64 column, int how, Same same) {
	for (i64 j = first; j < me; j += step)
		if (same(j)) return;
	T v = *to;
	for (i64 j = me; j < first + count * step; j += step)
		if (same(j)) v = joined(v, updates[j * scale + column], how);
	*to = v;
}

// The walk is over the updates; operand 0 has the place but for the axis, whose n elements are
// stride apart, and operand 1 the first update of the line along it, whose count are step apart.
template <class T> __device__ void scatter_at_of(const Walk &w, T *out, const T *updates,
	const int *index, i64 n, i64 stride, i64 count, i64 step, int how) {
	EACH(i, w.n) {
		i64 at[2];
		int k = index[i];
		places(w, i, at, 2);
		if (k >= 0 && k < n)
			put_all(out + at[0] + k * stride, updates, at[1], step, count, i, 1, 0, how,
				[=](i64 j) { return index[j] == k; });
	}
}
extern "C" __global__ void scatter_at(PARAM Walk w, void *out, const void *updates,
	const int *index, i64 n, i64 stride, i64 count, i64 step, int words, int how) {
	switch (words) {
	case 0: return scatter_at_of(w, (float *)out, (const float *)updates, index, n, stride, count,
		step, how);
	case 1: return scatter_at_of(w, (u8 *)out, (const u8 *)updates, index, n, stride, count, step,
		how);
	case 2: return scatter_at_of(w, (u16 *)out, (const u16 *)updates, index, n, stride, count,
		step, how);
	case 4: return scatter_at_of(w, (int *)out, (const int *)updates, index, n, stride, count,
		step, how);
	default: return scatter_at_of(w, (i64 *)out, (const i64 *)updates, index, n, stride, count,
		step, how);
	}
}

// The place that a vector of indices says, by the walk's axes, or −1.
__device__ inline i64 place_of(const Walk &w, const int *vector) {
	i64 at = 0;
	for (int a = 0; a < (int)w.rank; a++) {
		if (vector[a] < 0 || vector[a] >= w.size[a]) return -1;
		at += vector[a] * w.stride[0][a];
	}
	return at;
}

// Rows of inner elements, count of them for each of so many places.
template <class T> __device__ void scatter_nd_of(const Walk &w, T *out, const T *updates,
	const int *index, i64 n, i64 count, i64 of, i64 inner, int how) {
	EACH(i, n) {
		i64 row = i / inner, column = i % inner, part = row / count;
		i64 at = place_of(w, index + row * w.rank);
		if (at >= 0)
			put_all(out + (part * of + at) * inner + column, updates, part * count, 1, count, row,
				inner, column, how,
				[=, &w](i64 j) { return place_of(w, index + j * w.rank) == at; });
	}
}
extern "C" __global__ void scatter_nd(PARAM Walk w, void *out, const void *updates,
	const int *index, i64 n, i64 count, i64 of, i64 inner, int words, int how) {
	switch (words) {
	case 0: return scatter_nd_of(w, (float *)out, (const float *)updates, index, n, count, of,
		inner, how);
	case 1: return scatter_nd_of(w, (u8 *)out, (const u8 *)updates, index, n, count, of, inner,
		how);
	case 2: return scatter_nd_of(w, (u16 *)out, (const u16 *)updates, index, n, count, of, inner,
		how);
	case 4: return scatter_nd_of(w, (int *)out, (const int *)updates, index, n, count, of, inner,
		how);
	default: return scatter_nd_of(w, (i64 *)out, (const i64 *)updates, index, n, count, of, inner,
		how);
	}
}
extern "C" __global__ void gather_nd(PARAM Walk w, void *out, const void *x, const int *index,
	i64 n, i64 count, i64 of, i64 inner, int bytes) {
	EACH(i, n) {
		i64 row = i / inner, at = place_of(w, index + row * w.rank);
		if (at >= 0) move(out, i, x, (row / count * of + at) * inner + i % inner, bytes);
		else missing(out, i, bytes);
	}
}
