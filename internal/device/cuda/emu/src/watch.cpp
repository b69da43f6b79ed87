// The memory of accesses; see watch.h. Compiled without what makes kernels tell of theirs.
#include "watch.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <sys/mman.h>

namespace emu {

// Epochs number what lies between barriers, over all launches: a launch, a block of it and every
// barrier begin the next.
typedef uint32_t Epoch;

// Access is who touched a byte last; no epoch is nobody.
struct Access {
	Epoch epoch;
	uint16_t thread;
	uint16_t fences : 15, atomic : 1;
};

// Cell is what is known of a byte. Readers since the last write are the latest and one of another
// thread; of more than that, whether they were of several warps, or blocks.
struct Cell {
	Access written, read, other;
	Epoch warps, blocks;   // the epoch, and the launch, that readers of several were in
	Epoch defined;         // when it was written
	uint32_t wrote;        // the work that did
	uint32_t readers[4];   // of streams, the last work that read
	bool granted;
};

struct Range {
	size_t n;
	Memory memory;
	Cell *cells;
};

static void *fresh(size_t n) {
	void *p = mmap(0, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return p == MAP_FAILED ? abort(), nullptr : p;
}

struct Shadow : Watcher {
	std::map<uintptr_t, Range> ranges; // of the device and of the host
	uintptr_t base = 0;                // the range used last
	Range *range = nullptr;
	std::vector<Work> works{1};
	unsigned now = 0; // the current work
	Epoch launch = 1, start = 1, epoch = 1; // when launch and block began
	Span shared[2];
	std::vector<Cell> cells[2]; // of shared memory

	Cell *find(uintptr_t p, bool &local, Memory &memory);
	bool touch(uintptr_t p, size_t n, Kind kind, Who who) override;
	bool wrong(const char *what, uintptr_t p, size_t n, Kind kind, const std::string &other);
	bool ordered(uint32_t other) const;
	bool races(const Access &a, Kind kind, Who who, bool local) const;
	bool check(Cell &c, uintptr_t p, size_t n, Kind kind, Who who, bool local, Memory m);
	bool streams(Cell &c, uintptr_t p, size_t n, Kind kind);
	void note(Cell &c, Kind kind, Who who, bool local);
	std::string place(uintptr_t p) const;

	void grid(Span fixed, Span dynamic) override {
		launch = start = ++epoch;
		shared[0] = fixed, shared[1] = dynamic;
		for (int i : {0, 1}) cells[i].assign(shared[i].hi - shared[i].lo, Cell{});
	}
	void block() override { start = ++epoch; }
	void barrier() override { ++epoch; }
};

static Shadow all;

Watcher *watcher() { return &all; }

Cell *Shadow::find(uintptr_t p, bool &local, Memory &memory) {
	local = false, memory = DEVICE;
	for (int i : {0, 1})
		if (shared[i].has(p)) return local = true, &cells[i][p - shared[i].lo];
	if (!range || p < base || p >= base + range->n) {
		auto it = ranges.upper_bound(p);
		if (it == ranges.begin() || p >= std::prev(it)->first + std::prev(it)->second.n)
			return nullptr;
		base = std::prev(it)->first, range = &std::prev(it)->second;
	}
	memory = range->memory;
	return range->cells + (p - base);
}

// place says where a byte is, counted from the last argument of the kernel that is an address
// before it, or from the beginning of what was allocated.
std::string Shadow::place(uintptr_t p) const {
	for (int i : {0, 1})
		if (shared[i].has(p)) return "byte " + std::to_string(p - shared[i].lo) +
			(i ? " of dynamic shared memory" : " of shared memory");
	auto it = ranges.upper_bound(p);
	uintptr_t from = it == ranges.begin() ? 0 : std::prev(it)->first;
	std::string of = " of its memory";
	const std::string &args = works[now].args;
	for (size_t at = 0; at + 8 <= args.size(); at += 8) {
		uintptr_t x;
		memcpy(&x, args.data() + at, 8);
		if (x >= from && x <= p)
			from = x, of = " from word " + std::to_string(at / 8) + " of the arguments";
	}
	return "byte " + std::to_string(p - from) + of;
}

bool Shadow::wrong(const char *what, uintptr_t p, size_t n, Kind kind, const std::string &other) {
	if (!error.empty()) return false;
	error = std::string(what) + ": " + (kind == READ ? "reads " : "writes ") + place(p) +
		(n == 1 ? "" : " and on") + other;
	return false;
}

// ordered reports whether a work had been done for sure when the current one began.
bool Shadow::ordered(uint32_t other) const {
	const Work &a = works[other], &b = works[now];
	return a.stream == b.stream || (a.stream < b.clock.size() &&
		b.clock[a.stream] >= a.clock[a.stream]);
}

// races reports whether nothing lies between an access of this launch and the current one.
bool Shadow::races(const Access &a, Kind kind, Who who, bool local) const {
	if (a.epoch < launch || (local && a.epoch < start)) return false;
	if (kind == ATOMIC && a.atomic) return false;
	if (a.epoch < start) return true; // another block
	if (a.epoch < epoch || a.thread == who.thread) return false;
	return a.thread / 32 != who.thread / 32 || a.fences == (who.fences & 0x7fff);
}

static std::string by(const Access &a, Epoch start, const char *does) {
	return std::string(", which ") + (a.epoch < start ? "another block's " : "") + "thread " +
		std::to_string(a.thread) + " " + does + ", too";
}

bool Shadow::streams(Cell &c, uintptr_t p, size_t n, Kind kind) {
	uint32_t bad = c.wrote && !ordered(c.wrote) ? c.wrote : 0;
	for (uint32_t r : c.readers)
		if (kind != READ && r && !ordered(r)) bad = r;
	if (!bad) return true;
	return wrong("race between streams", p, n, kind, ", which " + works[bad].name +
		(bad == c.wrote ? " writes" : " reads") + " on another");
}

bool Shadow::check(Cell &c, uintptr_t p, size_t n, Kind kind, Who who, bool local, Memory m) {
	if (m == GUARDED && !c.granted) return wrong("outside of operands", p, n, kind, "");
	if (kind != WRITE && m != HOST && c.defined < (local ? start : 1))
		return wrong("nobody wrote this", p, n, kind, "");
	if (!local && !streams(c, p, n, kind)) return false;
	const char *race = local ? "race in shared memory" : "race in global memory";
	if (races(c.written, kind, who, local))
		return wrong(race, p, n, kind, by(c.written, start, "writes"));
	if (kind == READ) return true;
	for (const Access &a : {c.read, c.other})
		if (races(a, kind, who, local)) return wrong(race, p, n, kind, by(a, start, "reads"));
	if (c.warps == epoch || (!local && c.blocks == launch))
		return wrong(race, p, n, kind, ", which several others read");
	return true;
}

void Shadow::note(Cell &c, Kind kind, Who who, bool local) {
	Access a{epoch, (uint16_t)who.thread, (uint16_t)(who.fences & 0x7fff), kind == ATOMIC};
	if (kind != READ) {
		c.written = a, c.read = c.other = Access{}, c.warps = c.blocks = 0, c.defined = epoch;
		if (!local) c.wrote = now, std::fill_n(c.readers, 4, 0);
		return;
	}
	if (!local) c.readers[works[now].stream % 4] = now;
	if (c.read.epoch >= launch && c.read.epoch < start) c.blocks = launch;
	if (c.read.epoch == epoch && c.read.thread / 32 != who.thread / 32) c.warps = epoch;
	if (c.read.epoch && c.read.thread != a.thread) c.other = c.read;
	c.read = a;
}

bool Shadow::touch(uintptr_t p, size_t n, Kind kind, Who who) {
	for (uintptr_t at = p; at < p + n; at++) {
		bool local;
		Memory m;
		Cell *c = find(at, local, m);
		if (!c) continue;
		if (!check(*c, at, n, kind, who, local, m)) return false;
		note(*c, kind, who, local);
	}
	return true;
}

void begin(const Work &w) {
	all.works.push_back(w);
	all.now = all.works.size() - 1;
	all.error.clear();
	all.launch = all.start = ++all.epoch;
	all.shared[0] = all.shared[1] = Span{};
}

bool touch(const void *p, size_t n, Kind kind) {
	return all.touch((uintptr_t)p, n, kind, Who{});
}

void own(uintptr_t p, size_t n, Memory m) {
	all.ranges[p] = Range{n, m, (Cell *)fresh(n * sizeof(Cell))};
	all.range = nullptr;
}

void disown(uintptr_t p) {
	auto it = all.ranges.find(p);
	if (it == all.ranges.end()) return;
	munmap(it->second.cells, it->second.n * sizeof(Cell));
	all.ranges.erase(it);
	all.range = nullptr;
}

void grant(uintptr_t p, size_t n, bool written) {
	bool local;
	Memory m;
	for (uintptr_t at = p; at < p + n; at++)
		if (Cell *c = all.find(at, local, m)) c->granted = true, c->defined = written;
}

void forget(uintptr_t p, size_t n) {
	bool local;
	Memory m;
	for (uintptr_t at = p; at < p + n; at++)
		if (Cell *c = all.find(at, local, m)) c->defined = 0;
}

void revoke(uintptr_t p) {
	Range &r = all.ranges[p];
	madvise(r.cells, r.n * sizeof(Cell), MADV_DONTNEED);
}

} // namespace emu
