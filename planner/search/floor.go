package search

// floor is what no state of a search is below: how long a step takes, and the bytes that it copies.
type floor struct{ time, moved int64 }

// findFloor has the operations that run on the device in every state do so one after the other,
// each once the link has brought, one after the other and once, what they read so far that is never
// at home on the device; what is fetched is copied back.
func (s *search) findFloor() floor {
	var f floor
	var device, in, out int64
	brought := make([]bool, len(s.values))
	for i := range s.ops {
		o := &s.ops[i]
		if o.group >= 0 && !s.pinned[o.group] {
			continue
		}
		for _, v := range o.in {
			if va := &s.values[v]; !brought[v] && s.streams(va) {
				brought[v] = true
				in += va.in
				f.moved += va.bytes
			}
		}
		device = max(device, in) + o.time
		for _, v := range o.out {
			if va := &s.values[v]; va.fetched && !va.bound() {
				out = max(out, device) + va.out
				f.moved += va.bytes
			}
		}
	}
	f.time = max(device, out)
	return f
}

// streams reports whether a value has to be copied to the device in every state, to be read there:
// an input, or what a leaf has that is on the host.
func (s *search) streams(va *value) bool {
	if va.leaf >= 0 {
		return s.forced[va.leaf] < 0
	}
	return va.producer < 0
}
