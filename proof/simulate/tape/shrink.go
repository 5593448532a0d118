package tape

// Shrink returns a simpler list of choices for which fails is still true. It removes blocks of choices, then sets
// blocks to zero, then makes single choices smaller, until nothing helps or fails was called maxRuns times. fails must
// be true for the values given.
func Shrink(values []int, maxRuns int, fails func([]int) bool) []int {
	s := &shrinker{best: trimZeros(values), runsLeft: maxRuns, fails: fails}
	for progress := true; progress && s.runsLeft > 0; {
		before := len(s.best) + sum(s.best)
		s.removeBlocks()
		s.zeroBlocks()
		s.lowerChoices()
		progress = len(s.best)+sum(s.best) < before
	}
	return s.best
}

type shrinker struct {
	best     []int
	runsLeft int
	fails    func([]int) bool
}

// try keeps candidate if it still fails.
func (s *shrinker) try(candidate []int) bool {
	if s.runsLeft <= 0 {
		return false
	}
	s.runsLeft--
	candidate = trimZeros(candidate)
	if !s.fails(candidate) {
		return false
	}
	s.best = candidate
	return true
}

func (s *shrinker) removeBlocks() {
	for size := len(s.best) / 2; size > 0; size /= 2 {
		for start := 0; start+size <= len(s.best); {
			candidate := append(append([]int{}, s.best[:start]...), s.best[start+size:]...)
			if !s.try(candidate) {
				start += size
			}
		}
	}
}

func (s *shrinker) zeroBlocks() {
	for size := len(s.best) / 2; size > 0; size /= 2 {
		for start := 0; start+size <= len(s.best); start += size {
			if sum(s.best[start:start+size]) == 0 {
				continue
			}
			candidate := append([]int{}, s.best...)
			clear(candidate[start : start+size])
			s.try(candidate)
		}
	}
}

func (s *shrinker) lowerChoices() {
	for place := 0; place < len(s.best); place++ {
		for place < len(s.best) && s.best[place] > 1 {
			candidate := append([]int{}, s.best...)
			candidate[place] /= 2
			if !s.try(candidate) {
				break
			}
		}
	}
}

// trimZeros removes the zeros at the end, which a tape of choices adds by itself.
func trimZeros(values []int) []int {
	end := len(values)
	for end > 0 && values[end-1] == 0 {
		end--
	}
	return values[:end]
}

func sum(values []int) int {
	total := 0
	for _, value := range values {
		total += value
	}
	return total
}
