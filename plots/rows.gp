# Rows of boxes over one stretch of time; names and notes of the rows are texts of the sheet.

load programs.'/common.gp'
load programs.'/frame.gp'

set lmargin at screen across(area_left)
set rmargin at screen across(area_right)
set tmargin at screen down(area_top)
set bmargin at screen down(area_bottom)
set xrange [0:until] noextend
set yrange [n_devices:0] noextend
set xlabel x_title offset 0, 0.3 textcolor rgb text_colour
unset ytics

plot sample [i = 0:n_devices - 1:1] '+' \
         using (0):($1):(0):(until):($1 + box_top):($1 + box_bottom) \
         with boxxyerror lc rgb idle_colour, \
     folder.'/boxes.dat' using 1:3:1:2:3:4:5 with boxxyerror lc rgb variable \
         lw 0.5 fs solid 1 border lc rgb 'white', \
     folder.'/labels.dat' using 1:2:3:4 with labels center font font(label_size) \
         textcolor rgb variable
unset multiplot
set output
