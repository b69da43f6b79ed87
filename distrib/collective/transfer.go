package collective

// receive puts a transfer of len(b) bytes into b.
func receive(l link, from int, b []byte) error {
	for off, first := 0, true; first || off < len(b); first = false {
		msg, n, err := l.next(from, len(b), off)
		if err != nil {
			return err
		}
		at := off
		for _, p := range msg {
			at += copy(b[at:], p)
		}
		off += n
	}
	return nil
}

// fold adds a transfer to dst, what comes first.
func fold[T Number](l link, from int, dst []T) error {
	each := elemSize[T]()
	for off, first := 0, true; first || off < len(dst)*each; first = false {
		msg, n, err := l.next(from, len(dst)*each, off)
		if err != nil {
			return err
		}
		if n%each != 0 {
			return errHead
		}
		addBytes(dst[off/each:(off+n)/each], msg)
		off += n
	}
	return nil
}

// pieces calls f with x in parts that are a message each; with an empty x once.
func pieces[T Number](l link, x []T, f func(part []T) error) error {
	n := l.chunk() / elemSize[T]()
	for {
		k := min(n, len(x))
		if err := f(x[:k]); err != nil {
			return err
		}
		if x = x[k:]; len(x) == 0 {
			return nil
		}
	}
}

// get is receive for elements.
func get[T Number](l link, from int, x []T) error { return receive(l, from, bytesOf(x)) }
