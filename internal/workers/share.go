package workers

import "context"

// MaxShare is the most bytes that [Member.Share] hands out.
const MaxShare = maxSays

// Share hands what worker 0 says to all workers, which call it alike; what the others say
// plays no part. It returns when all have called it.
func (m *Member) Share(ctx context.Context, says []byte) ([]byte, error) {
	if m.Rank() != 0 {
		says = nil
	}
	if err := m.at().desk.Tell(ctx, says); err != nil {
		return nil, err
	}
	all, err := m.at().desk.Hear(ctx)
	if err != nil {
		return nil, err
	}
	return all[0], nil
}
