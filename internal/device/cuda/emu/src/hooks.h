// What the compiler calls where kernels touch memory, once it is told to: -fsanitize=thread calls
// these for every load and store, which elsewhere are a library's. Included by kernel.h.
#pragma once
#include <link.h>

#define EMU_HOOK extern "C" __attribute__((no_sanitize("thread"), visibility("default")))

namespace emu {

__attribute__((no_sanitize("thread"))) inline void touched(const void *p, size_t n, Kind kind) {
	Fiber *f = self;
	if (!watching || !f || ((char *)p >= f->stack && (char *)p < f->stack + stack_size)) return;
	self = nullptr; // not of what this calls
	bool ok = watching->touch((uintptr_t)p, n, kind, Who{f->warp * 32 + f->lane, *f->fences});
	self = f;
	if (!ok) fail(watching->error);
}

// fixed is where the calling thread has the static shared memory of this object: all that is
// declared to be a thread's own here.
inline Span fixed() {
	static thread_local volatile char first; // so that there is some
	first = 0;
	struct Search { uintptr_t inside; Span found; } s{(uintptr_t)&first, {}};
	dl_iterate_phdr([](dl_phdr_info *i, size_t, void *p) {
		Search *s = (Search *)p;
		for (int k = 0; k < i->dlpi_phnum; k++) {
			uintptr_t lo = (uintptr_t)i->dlpi_tls_data;
			if (i->dlpi_phdr[k].p_type != PT_TLS || !lo) continue;
			Span span{lo, lo + i->dlpi_phdr[k].p_memsz};
			if (span.has(s->inside)) s->found = span;
		}
		return 0;
	}, &s);
	return s.found;
}

} // namespace emu

#define EMU_TOUCHES(n) \
	EMU_HOOK void __tsan_read##n(void *p) { emu::touched(p, n, emu::READ); } \
	EMU_HOOK void __tsan_write##n(void *p) { emu::touched(p, n, emu::WRITE); } \
	EMU_HOOK void __tsan_unaligned_read##n(void *p) { emu::touched(p, n, emu::READ); } \
	EMU_HOOK void __tsan_unaligned_write##n(void *p) { emu::touched(p, n, emu::WRITE); }
EMU_TOUCHES(1)
EMU_TOUCHES(2)
EMU_TOUCHES(4)
EMU_TOUCHES(8)
EMU_TOUCHES(16)
EMU_HOOK void __tsan_read_range(void *p, size_t n) { emu::touched(p, n, emu::READ); }
EMU_HOOK void __tsan_write_range(void *p, size_t n) { emu::touched(p, n, emu::WRITE); }
EMU_HOOK void __tsan_vptr_update(void **, void *) {}
EMU_HOOK void __tsan_init() {}
// -fsanitize=alignment,bounds call these.
EMU_HOOK void __ubsan_handle_type_mismatch_v1(void *, void *p) {
	if (emu::self) emu::fail("misaligned: an address ends in " + std::to_string((uintptr_t)p % 64));
}
EMU_HOOK void __ubsan_handle_out_of_bounds(void *, void *i) {
	if (emu::self) emu::fail("outside of an array: index " + std::to_string((intptr_t)i));
}
// The watcher of this object's kernels.
EMU_HOOK void emu_watch(emu::Watcher *w) { emu::watching = w; }
