package lda

import "errors"

// store has the blocks of the parts that are here: in memory, or, of a corpus on a shelf, in files.
// Then two blocks of each part are in memory: one is sampled, while the one before it is written
// back and the one behind it is read in its place.
type store struct {
	corpus  *Corpus
	extents [][]extent // of each part; none of those that are elsewhere

	parts [][]*block       // all blocks, in memory
	file  *scratch[uint16] // or topics, in a file beside that of the words
	desks [2][]*block      // and of each part the blocks that are in memory
	busy  chan error       // what comes of what is read and written now; nil: nothing is
}

func newStore(c *Corpus, extents [][]extent) (s *store, err error) {
	s = &store{corpus: c, extents: extents, parts: make([][]*block, len(extents))}
	if c.shelf != nil {
		if err := c.put(); err != nil {
			return nil, err
		}
		for i := range s.desks {
			for _, of := range extents {
				s.desks[i] = append(s.desks[i], newBlock(of...))
			}
		}
		s.file, err = newScratch[uint16](c.dir)
		return s, err
	}
	for p, of := range extents {
		for _, e := range of {
			b := newBlock(e)
			b.lay(c, e)
			if err := c.read(e.at, b.words); err != nil {
				return nil, err
			}
			s.parts[p] = append(s.parts[p], b)
		}
	}
	return s, nil
}

// Close removes the file of topics, if there is one.
func (s *store) Close() error {
	if s.file == nil {
		return nil
	}
	return errors.Join(s.wait(), s.file.Close())
}

// wait waits for what is read and written.
func (s *store) wait() error {
	if s.busy == nil {
		return nil
	}
	err := <-s.busy
	s.busy = nil
	return err
}

// load has a block be of an extent, as it is in the files.
func (s *store) load(b *block, e extent) error {
	b.lay(s.corpus, e)
	if err := s.corpus.read(e.at, b.words); err != nil {
		return err
	}
	return s.file.read(e.at, b.topic)
}

// visit shows each block of a part.
func (s *store) visit(part int, do func(b *block)) error {
	for _, b := range s.parts[part] {
		do(b)
	}
	if s.file == nil {
		return nil
	}
	b := s.desks[0][part]
	for _, e := range s.extents[part] {
		if err := s.load(b, e); err != nil {
			return err
		}
		do(b)
	}
	return nil
}

// fill gives all blocks of a part new topics. Their words are not looked at.
func (s *store) fill(part int, do func(b *block)) error {
	for _, b := range s.parts[part] {
		do(b)
	}
	if s.file == nil {
		return nil
	}
	b := s.desks[0][part]
	for _, e := range s.extents[part] {
		b.lay(s.corpus, e)
		do(b)
		if err := s.file.write(e.at, b.topic); err != nil {
			return err
		}
	}
	return nil
}

// turn is the block of each part that a round samples, nil where there is none. Rounds are in
// order, from 0, and end with the one behind the last, of no blocks.
func (s *store) turn(round int) ([]*block, error) {
	if s.file == nil {
		now := make([]*block, len(s.parts))
		for p, blocks := range s.parts {
			if round < len(blocks) {
				now[p] = blocks[round]
			}
		}
		return now, nil
	}
	err := s.wait()
	if round == 0 && err == nil {
		err = s.exchange(-1, 0)
	}
	if err != nil {
		return nil, err
	}
	busy := make(chan error, 1)
	s.busy = busy
	go func() { busy <- s.exchange(round-1, round+1) }()
	now := make([]*block, len(s.extents))
	for p, of := range s.extents {
		if round < len(of) {
			now[p] = s.desks[round%2][p]
		}
	}
	return now, nil
}

// exchange writes the blocks of a round back, and reads those of another one into their places.
func (s *store) exchange(out, in int) error {
	for p, of := range s.extents {
		if 0 <= out && out < len(of) {
			if err := s.file.write(of[out].at, s.desks[out%2][p].topic); err != nil {
				return err
			}
		}
		if in < len(of) {
			if err := s.load(s.desks[in%2][p], of[in]); err != nil {
				return err
			}
		}
	}
	return nil
}
