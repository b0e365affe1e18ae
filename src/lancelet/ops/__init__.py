"""Operations: every change and every large job as plan, run and commit."""
