package gemm

const (
	kBlock   = 512 // longest run of k between two visits to C
	mBlock   = 512 // most rows of a task
	copyRows = 336 // most rows of a task whose A is copied
	nBlock   = 128 // most columns of a strip, over every instruction set
)

const (
	// panelPad is what a panel is longer than its elements, so that panels do not
	// all begin in the same set of the cache, and a kernel that writes whole
	// vectors stays in its own panel.
	panelPad = 16

	// bufferSize is the elements of a thread's buffer: packed panels, or widened rows,
	// of B. What the skinny paths keep in it is smaller.
	bufferSize = max(nBlock*(kBlock+panelPad), kBlock*(nBlock+panelPad))

	// wideSize is the elements of a thread's widened columns, or rows, of B.
	wideSize = max(maxLanes*(kBlock+panelPad), dotCols*(dotK+panelPad),
		rankRows*(wideCols+panelPad))

	// blockSize is the elements of a thread's copy of a block of A, either way round.
	blockSize = max(copyRows*(kBlock+panelPad), kBlock*(copyRows+panelPad))
)

// Rows of A that are setStride elements apart, a page, or a multiple of it, fall
// into the same sets of the L1 cache, which hold fewer lines than a panel has
// rows. Such an A is copied, if it is read more than twice and its rows are longRow
// or longer: block by block, each once for all columns of a task. So is one with
// contiguous columns that span more than spanA elements, if it has longColumn of them
// or more and panels are less than half a line high: of every line that a panel touches
// it uses a part, and lines that are far apart share sets, too.
const (
	setStride  = 1024
	longRow    = 64
	longColumn = 32
	spanA      = 1 << 13
)

// packing says how B is packed: not at all, or by a pass before its first use, which
// transposes columns or copies rows.
type packing int

const (
	packNot packing = iota
	packColumns
	packRows
	widenRows // not packed, but bfloat16 with contiguous rows
)

// readsB is how often B is read where it lies, if it spans more than a set's direct
// elements: a copy of its own, which a pass makes, pays for more panels of A only.
const readsB = 5

// layout is how a batch of products is cut into tasks. It depends on the shape
// and, where that changes no bit of the result, on the number of threads.
type layout struct {
	path path

	height int // rows of a panel of A
	kb     int // length of a block of k
	packB  packing
	panel  int  // elements of a packed panel
	strip  int  // columns of a task that are computed at a time
	copyA  bool // blocks of A are copied before they are used

	rows, cols         int // of a task
	rowTasks, colTasks int // of a product
	tasks              int
	group              int // products of a task
	perPiece           int // tasks
}

// Work, in multiply-adds, that is worth handing to another thread by itself.
const (
	pieceWork  = 250e3 // of tiles, at the least: some 2 µs
	skinnyWork = 100e3 // on a skinny path, at the least
	taskWork   = 1e6   // by a task, when a product is cut up for more threads
)

// plan cuts up a product, or its transpose, for a number of threads.
func (l *layout) plan(s *isa, x *product, threads int) {
	if x.k == 0 {
		l.planScale(x)
		return
	}
	x.orient()
	x.fold()
	l.group = 1
	if l.path = x.skinny(); l.path == tiled {
		l.planTiles(s, x, threads)
	} else {
		l.planSkinny(x, threads)
	}
	l.rowTasks, l.colTasks = ceil(x.m, l.rows), ceil(x.n, l.cols)
	l.tasks = ceil(x.batch, l.group) * l.rowTasks * l.colTasks
	l.perPiece = l.tasks
	if threads > 1 {
		task, least := work(min(l.rows, x.m), min(l.cols, x.n), x.k*l.group), pieceWork
		if l.path == dots || l.path == ranks {
			least = skinnyWork
		}
		l.perPiece = min(int(least/task)+1, l.tasks)
	}
}

// orient has a product with few columns compute the transpose of C.
func (x *product) orient() {
	if x.as.chosen {
		if x.as.flipped {
			*x = x.transposed()
		}
		return
	}
	if x.n > skinnyRows {
		return
	}
	if y := x.transposed(); x.skinny() == tiled && y.skinny() != tiled {
		*x = y
	}
}

// fold makes one product of a batch with a shared B whose matrices A, and C, lie
// one after another as the rows of one would. It leaves a skinny batch alone,
// whose bits would change.
func (x *product) fold() {
	if x.batch == 1 || x.b.mat != 0 || x.a.colMajor || x.a.mat != x.m*x.a.row ||
		x.c.mat != x.m*x.c.row {
		return
	}
	y := *x
	y.m, y.batch = x.m*x.batch, 1
	if flipped := y.transposed(); x.skinny() == tiled && flipped.skinny() == tiled {
		*x = y
	}
}

// planTiles chooses how tiles are computed, and the rows and columns of a task.
func (l *layout) planTiles(s *isa, x *product, threads int) {
	l.height, l.kb = split(x.m, s.rows), x.blockLength()
	l.panel = s.cols()*l.kb + panelPad
	switch {
	default:
		l.packB = packNot
	case x.b.colMajor:
		l.packB = packColumns
	case x.b.narrow():
		l.packB = widenRows
	case x.m > readsB*s.rows && x.b.row*l.kb > s.direct:
		l.packB = packRows
	}
	l.copyA = x.a.narrow() || l.stridesA(s, x)
	if l.planGroup(s, x); l.path == grouped {
		return
	}
	tasks := 1
	if threads > 1 {
		tasks = ceil(int(min(float64(4*threads), 1+work(x.m, x.n, x.k)/taskWork)), x.batch)
	}
	panels, most := ceil(x.n, s.cols()), s.strip/s.cols()
	l.strip = s.cols() * split(panels, min(most, ceil(panels, tasks)))
	if l.copyA {
		l.cutBlocks(x, tasks)
		return
	}
	l.cols = l.strip
	colTasks := ceil(x.n, l.cols)
	l.rows = l.height * min(mBlock/l.height, ceil(ceil(x.m, l.height), ceil(tasks, colTasks)))
}

// stridesA says whether A is copied for the distances between what a panel reads.
func (l *layout) stridesA(s *isa, x *product) bool {
	if x.a.colMajor {
		return s.copyT && x.m > s.rows && x.n > s.cols() && l.kb >= longColumn &&
			x.a.col*l.kb > spanA
	}
	return x.a.row%setStride == 0 && l.kb >= longRow && x.n > 2*s.cols()
}

// cutBlocks cuts a product whose A is copied: into as few rows as the copies allow
// and then, for more tasks, wherever less has to be copied again, A for every block
// of columns or B for every block of rows.
func (l *layout) cutBlocks(x *product, tasks int) {
	panels, strips := ceil(x.m, l.height), ceil(x.n, l.strip)
	rows, cols := ceil(panels, copyRows/l.height), 1
	for rows*cols < tasks && rows*cols < panels*strips {
		if cols < strips && (x.m <= x.n || rows == panels) {
			cols++
		} else {
			rows++
		}
	}
	l.rows, l.cols = l.height*ceil(panels, rows), l.strip*ceil(strips, cols)
}

// work returns the multiply-adds of a product.
func work(m, n, k int) float64 { return float64(m) * float64(n) * float64(k) }

// ceil returns x/y rounded up.
func ceil(x, y int) int { return (x + y - 1) / y }

// split cuts x into the fewest parts of at most limit, as even as they can be,
// and returns the size of all but the last.
func split(x, limit int) int { return ceil(x, ceil(x, limit)) }
